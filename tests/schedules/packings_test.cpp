#include "schedules/packings.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "schedules/cuda/candidate.h"
#include "tests/support/conv_kernels.h"

namespace sylvite::packings_test {
namespace {

TEST(Packings, AreTheFormsWhereHalideCompiles) {
  const Kernel kernel = conv_kernel({});
  EXPECT_EQ(packings_of(kernel, Form{}), input_packings(kernel, Form{}));
  EXPECT_FALSE(cuda_packings_of(kernel, Form{}));
  EXPECT_THROW((void)packings_of(kernel, {"no_such", {}}), UnsupportedError);
}

TEST(Packings, AreTheTemplatesWhereThereIsOne) {
  const Kernel kernel = conv_kernel({});
  EXPECT_FALSE(packings_of(kernel, {"cuda_conv", {}})[1].is_identity());
  EXPECT_EQ(packings_of(kernel, {"cudnn", {}}), packings_of(kernel, {"cuda_conv", {}}));
  EXPECT_EQ(packings_of(kernel, {"cuda_norm", {}}), packings_of(kernel, Form{}));
  EXPECT_THROW((void)input_packings(kernel, {"cuda_conv", {}}), UnsupportedError)
      << "lowering knows no template";
}

}  // namespace
}  // namespace sylvite::packings_test
