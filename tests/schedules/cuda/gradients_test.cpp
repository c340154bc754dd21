#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/cuda/attention_gradient.h"
#include "schedules/cuda/depthwise_gradient.h"
#include "schedules/cuda/line_gradient.h"
#include "schedules/cuda/matmul.h"
#include "schedules/cuda/nvrtc.h"
#include "schedules/cuda/pool_gradient.h"
#include "schedules/cuda/scatter_rows.h"
#include "tests/support/gradient_kernels.h"
#include "tests/support/run_kernel.h"
#include "tests/support/sample_card.h"

// What the templates of gradients read, and that their texts compile; tests/gpu runs them.

namespace sylvite::gradients_test {
namespace {

using testing::HasSubstr;

void expect_compiles(const CudaTemplate& made) {
  if (!cuda::missing_nvrtc().empty()) return;
  EXPECT_FALSE(cuda::compile_cuda(made.source).empty());
}

TEST(CudaGradients, PixelsAreTheDepthOfFilters) {
  const CudaMatmulProblem problem = read_cuda_filter_gradient(norm_kernel(filter_gradient_texts[1])).problem;
  EXPECT_EQ(problem.batch, 3 * 9);
  EXPECT_EQ(problem.m, 64);
  EXPECT_EQ(problem.n, 64);
  EXPECT_EQ(problem.k, 3 * 9 * 8);
  EXPECT_EQ(problem.part, 128);
  EXPECT_FALSE(problem.a.depth_fast);
  ASSERT_TRUE(problem.windows.has_value());
  EXPECT_EQ(problem.windows->stride_x, 2);
  EXPECT_FALSE(read_cuda_filter_gradient(norm_kernel(filter_gradient_texts[2])).problem.windows.has_value());
}

TEST(CudaGradients, OfFiltersCompile) {
  for (const char* text : filter_gradient_texts) {
    const Reading<CudaMatmulProblem> reading = read_cuda_filter_gradient(norm_kernel(text));
    ASSERT_EQ(reading.refusal, "") << text;
    expect_compiles(make_cuda_matmul(
        reading.problem, cuda_filter_gradient_choices(reading.problem, small_card())[0], small_card()));
  }
}

TEST(CudaGradients, OfLinesCompile) {
  for (const char* text : line_gradient_texts) {
    const Reading<CudaMatmulProblem> reading = read_cuda_line_gradient(norm_kernel(text));
    ASSERT_EQ(reading.refusal, "") << text;
    expect_compiles(make_cuda_line_gradient(reading.problem, cuda_line_gradient_choices(reading.problem)[0]));
  }
  EXPECT_THAT(read_cuda_line_gradient(norm_kernel(filter_gradient_texts[1])).refusal,
              HasSubstr("not joined"));
}

TEST(CudaGradients, OfDepthwiseFiltersPoolingsAndTablesCompile) {
  for (const char* text : depthwise_gradient_texts) {
    const Reading<CudaDepthwiseGradientProblem> reading = read_cuda_depthwise_gradient(norm_kernel(text));
    ASSERT_EQ(reading.refusal, "") << text;
    expect_compiles(
        make_cuda_depthwise_gradient(reading.problem, cuda_depthwise_gradient_choices(reading.problem)[0]));
  }
  for (const char* text : pool_gradient_texts) {
    const Reading<CudaPoolGradientProblem> reading = read_cuda_pool_gradient(norm_kernel(text));
    ASSERT_EQ(reading.refusal, "") << text;
    expect_compiles(make_cuda_pool_gradient(reading.problem, cuda_pool_gradient_choices(reading.problem)[0]));
  }
  for (const char* text : scatter_rows_texts) {
    const Reading<CudaScatterRowsProblem> reading = read_cuda_scatter_rows(norm_kernel(text));
    ASSERT_EQ(reading.refusal, "") << text;
    expect_compiles(make_cuda_scatter_rows(reading.problem, cuda_scatter_rows_choices(reading.problem)[0]));
  }
}

TEST(CudaGradients, OfAttentionCompile) {
  const auto check = [](std::span<const char* const> texts) {
    for (const char* text : texts) {
      const Reading<CudaAttentionGradientProblem> reading = read_cuda_attention_gradient(norm_kernel(text));
      ASSERT_EQ(reading.refusal, "") << text;
      for (const bool hopper : {false, true})
        expect_compiles(make_cuda_attention_gradient(
            reading.problem, cuda_attention_gradient_choices(reading.problem, hopper)[0]));
    }
  };
  check(attention_gradient_texts);
  check(block_mask_texts);
}

TEST(CudaGradients, AreOfOneGroupOrDepthwise) {
  const Kernel groups = norm_kernel(
      R"(graph g(%g: bf16[2,32,7,7]@c32, %x: bf16[2,32,7,7]@c32) { %v: f32[1,1,32,8] = filter_gradient(%g, %x) {kernel=[1,1], strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=4, parts=1} return %v })");
  EXPECT_THAT(read_cuda_filter_gradient(groups).refusal, HasSubstr("several groups"));
  EXPECT_THAT(read_cuda_depthwise_gradient(groups).refusal, HasSubstr("not depthwise"));
}

/// What every trial on a card is compared with.
TEST(CudaGradients, ReferencesAgreeWithTheInterpreter) {
  const auto check = [](std::span<const char* const> texts) {
    for (const char* text : texts) {
      const Kernel kernel = norm_kernel(text);
      check_candidate(kernel, reference_candidate(kernel), {}, 1e-2);
    }
  };
  check(filter_gradient_texts);
  check(line_gradient_texts);
  check(depthwise_gradient_texts);
  check(pool_gradient_texts);
  for (const char* text : attention_gradient_texts) {
    const Kernel kernel = norm_kernel(text);
    std::vector<Tensor> inputs = random_inputs(kernel);
    // Sums are at least as large as scores: weights are at most 1.
    if (inputs.size() >= 6)
      for (std::int64_t i = 0; i < inputs[4].size(); ++i) inputs[4].set_double(i, 60);
    check_candidate(kernel, reference_candidate(kernel), inputs, 1e-2);
  }
}

}  // namespace
}  // namespace sylvite::gradients_test
