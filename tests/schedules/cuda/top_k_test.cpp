#include "schedules/cuda/top_k.h"

#include <gtest/gtest.h>

#include "schedules/cuda/nvrtc.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/top_k_kernels.h"

// What the template of first elements reads and refuses, and that its text compiles; tests/gpu runs it.

namespace sylvite::top_k_test {
namespace {

TEST(CudaTopK, ReadsRowsAlongAnyAxis) {
  const CudaTopKProblem problem = read_cuda_top_k(norm_kernel(top_k_texts[5])).problem;
  EXPECT_EQ(problem.rows, 12);
  EXPECT_EQ(problem.count, 500);
  EXPECT_EQ(problem.inner, 3);
  EXPECT_EQ(problem.k, 37);
  EXPECT_FALSE(problem.largest);
}

TEST(CudaTopK, Compiles) {
  for (const char* text : top_k_texts) {
    const Reading<CudaTopKProblem> reading = read_cuda_top_k(norm_kernel(text));
    ASSERT_EQ(reading.refusal, "") << text;
    for (const CudaTopKChoice& choice : cuda_top_k_choices(reading.problem)) {
      const CudaTemplate made = make_cuda_top_k(reading.problem, choice);
      EXPECT_LE(made.launch.shape.block[0], 1024U);
      if (!cuda::missing_nvrtc().empty()) continue;
      EXPECT_FALSE(cuda::compile_cuda(made.source).empty());
    }
  }
}

TEST(CudaTopK, LeavesShortRowsBesideEachOtherAndManyWideElementsToOthers) {
  const auto refusal = [](const char* text) { return read_cuda_top_k(norm_kernel(text)).refusal; };
  EXPECT_EQ(
      refusal(
          R"(graph g(%a: f32[32,64,56,56]) { %v: f32[32,5,56,56], %i: i64[32,5,56,56] = top_k(%a) {axis=1, k=[5]} return %v, %i })"),
      "its rows are short and lie beside each other");
  EXPECT_EQ(
      refusal(
          R"(graph g(%a: i64[6,40000]) { %v: i64[6,3000], %i: i64[6,3000] = top_k(%a) {axis=1, k=[3000]} return %v, %i })"),
      "many elements of 64 bits are taken");
}

}  // namespace
}  // namespace sylvite::top_k_test
