#include "frontend/values/strided.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "sylvite/tensor.h"

namespace sylvite::strided_test {
namespace {

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

/// Element by element.
std::vector<float> copied_slowly(const StridedCopy& copy, const std::vector<float>& source,
                                 std::size_t room) {
  std::vector<float> target(room);
  const std::int64_t count = checked_product(copy.dims, "copy");
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, from = copy.offset, to = copy.target_offset;
    for (std::size_t axis = copy.dims.size(); axis-- > 0; rest /= copy.dims[axis]) {
      from += rest % copy.dims[axis] * copy.strides[axis];
      to += rest % copy.dims[axis] * copy.target_strides[axis];
    }
    target[static_cast<std::size_t>(to)] = source[static_cast<std::size_t>(from)];
  }
  return target;
}

TEST(Strided, CopiesAsElementByElement) {
  const StridedCopy cases[] = {
      {{}, {}, 5, {}, 7},
      {{2, 3, 4}, {12, 4, 1}, 0, {12, 4, 1}, 0},  // all one row
      {{2, 3, 4}, {24, 4, 1}, 3, {12, 4, 1}, 0},  // the last two are one
      {{3, 1, 2, 5}, {10, 99, 5, 1}, 0, {10, 7, 5, 1}, 2},
      {{4, 3, 3}, {0, 0, 0}, 6, {9, 3, 1}, 0},  // one element repeated
      {{4, 3, 3}, {0, 3, 1}, 0, {9, 3, 1}, 0},  // the first axis repeats
      {{4, 3, 3}, {1, 0, 0}, 0, {9, 3, 1}, 0},  // the last ones do
      {{3, 4}, {4, -1}, 3, {4, 1}, 0},          // backwards
      {{3, 4}, {-4, -1}, 11, {4, 1}, 0},
      {{5, 4}, {1, 5}, 0, {4, 1}, 0},   // transposed
      {{2, 6}, {12, 2}, 1, {6, 1}, 0},  // every second one, as one row
      {{3, 0, 2}, {2, 2, 1}, 0, {2, 2, 1}, 0},
  };
  const std::vector<float> source = numbers(64);
  for (const StridedCopy& copy : cases) {
    std::vector<float> target(64);
    copy_strided(copy, source.data(), target.data(), sizeof(float));
    EXPECT_EQ(target, copied_slowly(copy, source, target.size()));
  }
}

TEST(Strided, TransposesAsElementByElement) {
  const Dims dims = {3, 4, 2, 5};
  const Tensor tensor = Tensor::of<float>(DType::f32, dims, numbers(120));
  Dims perm = {0, 1, 2, 3};
  do {
    const Tensor result = transposed(tensor, perm);
    const Dims strides = permuted(dense_strides(dims), perm);
    const StridedCopy copy{result.dims(), strides, 0, dense_strides(result.dims()), 0};
    const std::span<const float> got = result.view<float>();
    EXPECT_EQ(std::vector<float>(got.begin(), got.end()), copied_slowly(copy, numbers(120), 120));
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(Strided, Transposes) {
  for (const DType dtype : {DType::f32, DType::i64, DType::u8, DType::bf16}) {
    const Dims dims = {3, 40, 5};  // more rows than are copied together
    Tensor tensor(dtype, dims);
    for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>(i % 251));
    for (const Dims& perm : {Dims{0, 1, 2}, Dims{0, 2, 1}, Dims{2, 1, 0}, Dims{1, 2, 0}}) {
      const Tensor result = transposed(tensor, perm);
      ASSERT_EQ(result.dims(), permuted(dims, perm));
      const Dims strides = permuted(dense_strides(dims), perm);
      std::int64_t at = 0;
      for (std::int64_t i = 0; i < result.dims()[0]; ++i)
        for (std::int64_t j = 0; j < result.dims()[1]; ++j)
          for (std::int64_t k = 0; k < result.dims()[2]; ++k, ++at)
            ASSERT_EQ(result.as_double(at),
                      tensor.as_double(i * strides[0] + j * strides[1] + k * strides[2]));
    }
  }
}

TEST(Strided, TransposesScalarsAndNothing) {
  EXPECT_EQ(transposed(Tensor::scalar_f32(2.5F), {}).as_double(0), 2.5);
  EXPECT_EQ(transposed(Tensor(DType::f32, {2, 0, 3}), {2, 0, 1}).dims(), (Dims{3, 2, 0}));
}

}  // namespace
}  // namespace sylvite::strided_test
