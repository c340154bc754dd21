#include "runtime/cuda/cudnn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sylvite::cudnn_test {
namespace {

using testing::HasSubstr;

/// Where the library is missing, whatever asks for it is told its name, a candidate on a machine without a
/// GPU as well.
TEST(Cudnn, AnAbsentLibraryIsNamed) {
  try {
    EXPECT_GT(cuda::cudnn_version(), 8000);
  } catch (const UnsupportedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cuDNN"));
    EXPECT_THAT(error.what(), HasSubstr("libcudnn.so.9"));
    EXPECT_THROW(cuda::CudnnConv({}), UnsupportedError);
  }
}

}  // namespace
}  // namespace sylvite::cudnn_test
