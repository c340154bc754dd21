#include "frontend/values/strided.h"

#include <gtest/gtest.h>

namespace sylvite {
namespace {

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
}  // namespace sylvite
