#include "schedules/cuda/object.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace sylvite::object_test {
namespace {

/// No field has its default.
CudaObject kernel_object() {
  CudaObject object;
  LaunchSpec& launch = object.launch;
  launch.entry = "matmul_bf16";
  launch.shape = {{7, 2, 3}, {384, 4, 5}, 2, 200 << 10, true, 132, {{BlockStep::Kind::parts, 64}}};
  CudaTensorMap map{1, 256, DType::f16, true, {2, 3, 4, 5}, {32, 64, 128}, {8, 9, 10, 11}, 64, {}};
  launch.maps = {map, {}};
  map.windows = {{-1, -2}, {3, 4}, {2, 5}};
  launch.maps.push_back(map);
  launch.pointers = {4, -1, 2};
  object.image = std::string(
      "\x7f"
      "ELF\0and code\n",
      14);
  object.architecture = "sm_90a";
  return object;
}

CudaObject matmul_object() {
  LibraryMatmul call;
  call.problem = {{3, false, 1, 20, 300, true},
                  {4, true, 5, 60, 700, false},
                  DType::f32,
                  DType::f16,
                  2,
                  3,
                  4,
                  5,
                  6,
                  {1, DType::f64, SimpleEpilogue::Activation::gelu_tanh}};
  call.algorithm = 7;
  CudaObject object;
  object.launch.library = call;
  return object;
}

CudaObject conv_object() {
  LibraryConv call;
  call.problem = {3,      4,         5,      6,      7,      DType::f16, DType::f32, {1, 2, 3, 4},
                  {5, 6}, {7, 8, 9}, {1, 2}, {3, 4}, {5, 6}, {7, 8},     true};
  call.engine = 9;
  CudaObject object;
  object.launch.library = call;
  return object;
}

class CudaObjects : public testing::TestWithParam<CudaObject> {};

TEST_P(CudaObjects, SurviveTheirBytes) {
  const std::string bytes = to_bytes(GetParam());
  EXPECT_TRUE(is_cuda_object(bytes));
  EXPECT_EQ(parse_cuda_object(bytes), GetParam());
  EXPECT_EQ(to_bytes(parse_cuda_object(bytes)), bytes);
}

TEST_P(CudaObjects, AreRefusedWhenCutShortOrTooLong) {
  const std::string bytes = to_bytes(GetParam());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW((void)parse_cuda_object(bytes.substr(0, size)), IoError) << size << " of " << bytes.size();
  EXPECT_THROW((void)parse_cuda_object(bytes + '\0'), IoError);
}

/// A changed byte is another object or a refusal; lengths never lead outside the bytes.
TEST_P(CudaObjects, MayBeDamagedAnywhere) {
  const std::string bytes = to_bytes(GetParam());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      try {
        EXPECT_NE(parse_cuda_object(damaged), GetParam()) << at;
      } catch (const IoError&) {
        continue;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Launches, CudaObjects,
                         testing::Values(kernel_object(), matmul_object(), conv_object()));

TEST(CudaObject, OthersAreRefused) {
  EXPECT_FALSE(
      is_cuda_object("\x7f"
                     "ELF"));
  EXPECT_FALSE(is_cuda_object(""));
  EXPECT_THROW((void)parse_cuda_object("\x7f"
                                       "ELF"),
               IoError);
  std::string bytes = to_bytes(kernel_object());
  bytes.replace(bytes.find(" 3\n"), 3, " 4\n");
  EXPECT_TRUE(is_cuda_object(bytes));
  EXPECT_THROW((void)parse_cuda_object(bytes), IoError) << "another version";
}

}  // namespace
}  // namespace sylvite::object_test
