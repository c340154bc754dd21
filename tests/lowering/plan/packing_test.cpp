#include "lowering/plan/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace sylvite::packing_test {
namespace {

Tensor counting(const Dims& dims) {
  Tensor tensor(DType::f32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>(i + 1));
  return tensor;
}

/// The definition of a packing, one element at a time.
Tensor slow_pack(const Tensor& tensor, const Packing& packing) {
  Tensor result(tensor.dtype(), packing.packed_dims(tensor.dims()));
  const Dims strides = dense_strides(tensor.dims());
  const Dims packed_strides = dense_strides(result.dims());
  for (std::int64_t i = 0; i < result.size(); ++i) {
    Dims coordinate(tensor.dims().size(), 0);
    for (std::size_t a = 0; a < packing.order.size(); ++a) {
      const auto dim = static_cast<std::size_t>(packing.order[a] / 2);
      const std::int64_t index = (i / packed_strides[a]) % result.dims()[a];
      const auto after = packing.order.begin() + static_cast<std::ptrdiff_t>(a) + 1;
      const bool is_pairs = std::find(after, packing.order.end(), packing.order[a]) != packing.order.end();
      coordinate[dim] += is_pairs                    ? 2 * index
                         : packing.order[a] % 2 == 1 ? index
                                                     : index * packing.factors[dim];
    }
    std::int64_t offset = 0;
    bool inside = true;
    for (std::size_t d = 0; d < coordinate.size(); ++d) {
      inside = inside && coordinate[d] < tensor.dims()[d];
      offset += coordinate[d] * strides[d];
    }
    if (inside) result.set_double(i, tensor.as_double(offset));
  }
  return result;
}

void expect_packs(const Dims& dims, const Packing& packing) {
  const Tensor tensor = counting(dims);
  const Tensor packed = pack(tensor, packing);
  const Tensor expected = slow_pack(tensor, packing);
  ASSERT_EQ(packed.dims(), expected.dims());
  for (std::int64_t i = 0; i < packed.size(); ++i) ASSERT_EQ(packed.as_double(i), expected.as_double(i)) << i;
}

TEST(Packing, MatmulPanels) {
  expect_packs({3, 64}, {{1, 32}, {2, 0, 3}});
  expect_packs({7, 45}, {{1, 32}, {2, 0, 3}});
}

TEST(Packing, ConvolutionWeights) {
  expect_packs({20, 18, 3, 2}, {{16, 16, 1, 1}, {0, 2, 4, 6, 3, 1}});
  expect_packs({33, 3, 2, 2}, {{16, 1, 1, 1}, {0, 4, 6, 2, 1}});
}

TEST(Packing, PairsOfChannels) {
  const Packing tiles{{32, 32, 1, 1}, {0, 2, 4, 6, 3, 1, 3}};
  EXPECT_EQ(tiles.packed_dims({40, 50, 3, 3}), (Dims{2, 2, 3, 3, 16, 32, 2}));
  expect_packs({40, 50, 3, 2}, tiles);
  expect_packs({64, 37, 1, 1}, tiles);
  expect_packs({24, 3, 3, 7}, {{32, 4, 1, 1}, {0, 4, 6, 2, 3, 1, 3}});
  EXPECT_THROW((void)pack(counting({4, 6}), {{1, 3}, {0, 2, 3, 3}}), InternalError);
  EXPECT_THROW((void)pack(counting({4, 6}), {{1, 2}, {0, 2, 3, 3, 3}}), InternalError);
}

TEST(Packing, InnerPartBeforeOuterPart) {
  expect_packs({10, 5}, {{4, 1}, {1, 2, 0}});
}

TEST(Packing, VectorsAndScalars) {
  expect_packs({10}, {{4}, {0, 1}});
  expect_packs({10}, {{1}, {0}});
  EXPECT_EQ(pack(counting({}), {}).size(), 1);
}

TEST(Packing, LargeTensorsInParts) {
  expect_packs({700, 1000}, {{1, 32}, {2, 0, 3}});
}

TEST(Packing, OtherElementSizes) {
  const Tensor bytes = Tensor::of<std::uint8_t>(DType::u8, {2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(pack(bytes, {{1, 2}, {2, 0, 3}}).to_int64s(),
            (std::vector<std::int64_t>{1, 2, 4, 5, 3, 0, 6, 0}));
}

TEST(Packing, LayoutPacking) {
  TensorType type = make_type(DType::f32, {2, 20, 3, 3});
  EXPECT_TRUE(layout_packing(type).is_identity());
  type.layout.channel_block = 16;
  EXPECT_EQ(layout_packing(type).packed_dims(type.dims()), (Dims{2, 2, 3, 3, 16}));
  type.shape = {3, 20, 2, 2};  // blocks of channels outermost
  EXPECT_EQ(layout_packing(type).packed_dims(type.dims()), (Dims{2, 3, 2, 2, 16}));
  type.shape = {3, 20, 1, 1};
  EXPECT_EQ(layout_packing(type).packed_dims(type.dims()), type.storage_dims());
  type.shape = {2, 20, 3, 3};
  expect_packs(type.dims(), layout_packing(type));
  type.shape = {2, 1, 3, 3};  // images of one channel, innermost as those of more
  type.layout.channel_block = 1;
  EXPECT_EQ(layout_packing(type).packed_dims(type.dims()), type.storage_dims());
  expect_packs(type.dims(), layout_packing(type));
}

TEST(Packing, RefusesWhatDoesNotFit) {
  EXPECT_THROW((void)pack(counting({2, 2}), {{2}, {0, 1}}), InternalError);
  EXPECT_THROW((void)pack(counting({2, 2}), {{1, 1}, {0, 0}}), InternalError);
  EXPECT_THROW((void)pack(counting({2, 2}), {{1, 1}, {0, 3}}), InternalError);
  EXPECT_THROW((void)pack(counting({2, 2}), {{1, 1}, {0}}), InternalError);
}

}  // namespace
}  // namespace sylvite::packing_test
