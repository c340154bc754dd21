#include "runtime/cold_weights.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace sylvite::cold_weights_test {
namespace {

Tensor counting(const Dims& dims) {
  Tensor tensor(DType::f32, dims);
  float value = 0;
  for (float& element : tensor.mutable_view<float>()) element = value++;
  return tensor;
}

TEST(ColdWeights, MakesAsManyCopiesAsTheCycleHolds) {
  const std::vector<Tensor> inputs = {counting({8, 32})};
  ColdWeights weights(inputs, 4096);
  const ColdWeights::Copies& copies = weights.packed(0, {});
  ASSERT_EQ(copies.count, 4U);  // of 1024 bytes
  std::set<const std::byte*> places;
  for (std::size_t turn = 0; turn < 4; ++turn) {
    EXPECT_EQ(std::memcmp(copies.at(turn), inputs[0].data(), 1024), 0);
    places.insert(copies.at(turn));
  }
  EXPECT_EQ(places.size(), 4U);
  EXPECT_EQ(copies.at(4), copies.at(0));
}

TEST(ColdWeights, PacksOncePerPacking) {
  const std::vector<Tensor> inputs = {counting({8, 32})};
  ColdWeights weights(inputs, 0);
  const Packing panels{{1, 16}, {2, 0, 3}};
  const ColdWeights::Copies& packed = weights.packed(0, panels);
  EXPECT_EQ(packed.count, 1U);
  EXPECT_EQ(packed.dims, (Dims{2, 8, 16}));
  float second_panel = 0;
  std::memcpy(&second_panel, packed.at(0) + sizeof(float) * 8 * 16, sizeof(float));
  EXPECT_EQ(second_panel, 16);
  EXPECT_EQ(&weights.packed(0, panels), &packed);
  EXPECT_NE(&weights.packed(0, {}), &packed);
}

TEST(ColdWeights, TurnsAreSharedByAll) {
  const std::vector<Tensor> inputs = {counting({4})};
  ColdWeights weights(inputs);
  EXPECT_EQ(weights.next_turn(), 0U);
  EXPECT_EQ(weights.next_turn(), 1U);
  EXPECT_EQ(weights.packed(0, {}).stride, 64U);
}

}  // namespace
}  // namespace sylvite::cold_weights_test
