#include "schedules/cuda/scatter_folds.h"

#include <gtest/gtest.h>

#include "schedules/cuda/nvrtc.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/scatter_fold_kernels.h"

// What the template of folded values reads and refuses, and that its text compiles; tests/gpu runs it.

namespace sylvite::scatter_folds_test {
namespace {

TEST(CudaScatterFolds, ReadsDimsAroundTheAxisAsBatchesAndColumns) {
  const CudaScatterFoldsProblem problem = read_cuda_scatter_folds(norm_kernel(scatter_fold_texts[1])).problem;
  EXPECT_EQ(problem.batches, 5);
  EXPECT_EQ(problem.places, 40);
  EXPECT_EQ(problem.columns, 4);
  EXPECT_EQ(problem.updates, 900);
  EXPECT_EQ(problem.indices_of_update, 0);
  EXPECT_FALSE(problem.initial.has_value());
}

TEST(CudaScatterFolds, ReadsTuplesAndNumbersThatAreEverywhere) {
  const CudaScatterFoldsProblem tuples = read_cuda_scatter_folds(norm_kernel(scatter_fold_texts[6])).problem;
  EXPECT_EQ(tuples.places, 63);
  EXPECT_EQ(tuples.columns, 20);
  EXPECT_EQ(tuples.indices_of_update, 2);
  EXPECT_EQ(read_cuda_scatter_folds(norm_kernel(scatter_fold_texts[2])).problem.initial, -9984.0)
      << "as bf16 has it";
}

TEST(CudaScatterFolds, Compiles) {
  for (const char* text : scatter_fold_texts) {
    const Reading<CudaScatterFoldsProblem> reading = read_cuda_scatter_folds(norm_kernel(text));
    ASSERT_EQ(reading.refusal, "") << text;
    const std::vector<CudaScatterFoldsChoice> choices = cuda_scatter_folds_choices(reading.problem);
    ASSERT_FALSE(choices.empty());
    for (const CudaScatterFoldsChoice& choice : choices) {
      const CudaTemplate made = make_cuda_scatter_folds(reading.problem, choice);
      EXPECT_LE(made.launch.shape.shared_bytes, 96U << 10);
      EXPECT_LE(choice.width * choice.segments * choice.together, 256);
      EXPECT_TRUE(choice.together == 1 || choice.width * choice.together == 32);
    }
    if (cuda::missing_nvrtc().empty())
      EXPECT_FALSE(cuda::compile_cuda(make_cuda_scatter_folds(reading.problem, choices[0]).source).empty());
  }
}

TEST(CudaScatterFolds, RefusesWithAReason) {
  const auto refusal = [](const char* text) { return read_cuda_scatter_folds(norm_kernel(text)).refusal; };
  EXPECT_EQ(refusal(R"(graph g(%x: f32[9], %i: i64[7], %u: f32[7]) {
    %v: f32[9] = scatter_elements(%x, %i, %u) {axis=0, reduction="none"} return %v })"),
            "it folds nothing");
  EXPECT_EQ(refusal(R"(graph g(%x: f32[9,5], %i: i64[7,4], %u: f32[7,4]) {
    %v: f32[9,5] = scatter_elements(%x, %i, %u) {axis=0, reduction="add"} return %v })"),
            "some columns have no updates");
  EXPECT_EQ(refusal(R"(graph g(%x: u8[9], %i: i64[7], %u: u8[7]) {
    %v: u8[9] = scatter_elements(%x, %i, %u) {axis=0, reduction="max"} return %v })"),
            "it folds neither floats nor integers of 32 or 64 bits");
}

}  // namespace
}  // namespace sylvite::scatter_folds_test
