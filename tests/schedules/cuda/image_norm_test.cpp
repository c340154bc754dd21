#include "schedules/cuda/image_norm.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/cuda/nvrtc.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/run_kernel.h"

namespace sylvite::image_norm_test {
namespace {

using testing::HasSubstr;

TEST(CudaImageNorm, ReadsImagesPixelsAndGroups) {
  const Reading<CudaImageNormProblem> reading = read_cuda_image_norm(norm_kernel(image_norm_texts[0]));
  EXPECT_EQ(reading.refusal, "");
  const CudaImageNormProblem& problem = reading.problem;
  EXPECT_EQ(problem.images, 2);
  EXPECT_EQ(problem.pixels, 14 * 9);
  EXPECT_EQ(problem.channels, 64);
  EXPECT_EQ(problem.members, 2);
  EXPECT_EQ(problem.prologue_operands.size(), 1U);
  ASSERT_EQ(problem.epilogue_operands.size(), 2U);
  EXPECT_EQ(problem.epilogue_operands[0].row, 0);
  EXPECT_EQ(problem.epilogue_operands[0].column, 1);
}

/// What every trial on a card is compared with.
TEST(CudaImageNorm, ReferenceNormsGroups) {
  for (const char* text : image_norm_texts) {
    const Kernel kernel = norm_kernel(text);
    const double tolerance = kernel.body.type(kernel.body.inputs[0]).dtype == DType::f32 ? 5e-3 : 2e-2;
    check_candidate(kernel, reference_candidate(kernel), {}, tolerance);
  }
}

TEST(CudaImageNorm, TheSpaceTakesThem) {
  const Machine machine = fixed_machine("h200");
  for (const char* text : image_norm_texts)
    EXPECT_EQ(spaces_for(norm_kernel(text), machine).front().name, "cuda_image_norm") << text;
}

TEST(CudaImageNorm, RefusesWithAReason) {
  const auto refusal = [](const char* text) { return read_cuda_image_norm(norm_kernel(text)).refusal; };
  EXPECT_THAT(
      refusal("graph g(%a: f32[2,8,5,5]) { %v: f32[2,8,5,5] = layer_norm(%a) {axis=1, groups=2} return %v }"),
      HasSubstr("innermost"));
  EXPECT_THAT(refusal("graph g(%a: f32[2,64]) { %v: f32[2,64] = layer_norm(%a) {axis=1} return %v }"),
              HasSubstr("no groups"));
  EXPECT_THAT(refusal("graph g(%a: bf16[2,65536,2,2]@c65536) { %v: bf16[2,65536,2,2]@c65536 = layer_norm(%a) "
                      "{axis=1, groups=1} return %v }"),
              HasSubstr("fit a block"));
}

/// A cluster holds 12,288 pixels of 32 channels in 16 bits.
TEST(CudaImageNorm, LargeImagesThatNoClusterHoldsAreFoldedAhead) {
  const auto refusal = [](std::int64_t images, const char* type, std::int64_t size) {
    const std::string shape = fmt::format("{}[{},32,{},{}]@c32", type, images, size, size);
    const Kernel kernel = norm_kernel(fmt::format(
        "graph g(%a: {0}) {{ %v: {0} = layer_norm(%a) {{axis=1, groups=32}} return %v }}", shape));
    EXPECT_EQ(read_cuda_image_norm(kernel).refusal, "") << "one that is there runs";
    return refuse_product_templates(kernel, fixed_machine("h200"));
  };
  EXPECT_NE(refusal(32, "bf16", 128), "");
  EXPECT_EQ(refusal(32, "bf16", 96), "") << "a cluster holds one";
  EXPECT_EQ(refusal(8, "bf16", 128), "") << "the caches hold all";
  EXPECT_EQ(refusal(32, "f32", 128), "") << "sums of squares would cost digits";
}

TEST(CudaImageNorm, BlocksTakeWholeGroups) {
  for (const char* text : image_norm_texts) {
    const CudaImageNormProblem problem = read_cuda_image_norm(norm_kernel(text)).problem;
    for (const CudaImageNormChoice& choice : cuda_image_norm_choices(problem)) {
      const CudaTemplate made = make_cuda_image_norm(problem, choice);
      EXPECT_EQ(made.launch.shape.grid[0] % made.launch.shape.cluster, 0U);
      EXPECT_EQ(made.launch.shape.block[0] % 32, 0U);
      EXPECT_LE(made.launch.shape.block[0], 512U);
    }
  }
}

TEST(CudaImageNorm, Compiles) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  for (const char* text : image_norm_texts) {
    const CudaImageNormProblem problem = read_cuda_image_norm(norm_kernel(text)).problem;
    const CudaTemplate made = make_cuda_image_norm(problem, cuda_image_norm_choices(problem).front());
    EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U);
  }
}

}  // namespace
}  // namespace sylvite::image_norm_test
