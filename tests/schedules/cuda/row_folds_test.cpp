#include "schedules/cuda/row_folds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/cuda/nvrtc.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/row_fold_kernels.h"
#include "tests/support/run_kernel.h"

namespace sylvite::row_folds_test {
namespace {

using testing::HasSubstr;

TEST(CudaRowFolds, ReadsEachOperandOnce) {
  const Reading<CudaRowFoldsProblem> reading = read_cuda_row_folds(norm_kernel(row_fold_texts[0]));
  EXPECT_EQ(reading.refusal, "");
  const CudaRowFoldsProblem& problem = reading.problem;
  EXPECT_EQ(problem.rows, 130);
  EXPECT_EQ(problem.columns, 768);
  EXPECT_EQ(problem.folds.size(), 2U);
  EXPECT_EQ(problem.operands.size(), 6U);
}

/// What every trial on a card is compared with.
TEST(CudaRowFolds, ReferenceFoldsRows) {
  for (const char* text : row_fold_texts) {
    const Kernel kernel = norm_kernel(text);
    const double tolerance = kernel.body.type(kernel.body.outputs[0]).dtype == DType::f32 ? 5e-3 : 2e-2;
    check_candidate(kernel, reference_candidate(kernel), {}, tolerance);
  }
}

TEST(CudaRowFolds, TheSpaceTakesThem) {
  const Machine machine = fixed_machine("h200");
  for (const char* text : row_fold_texts)
    EXPECT_EQ(spaces_for(norm_kernel(text), machine).front().name, "cuda_row_folds") << text;
}

TEST(CudaRowFolds, RefusesWithAReason) {
  const auto refusal = [](const char* text) { return read_cuda_row_folds(norm_kernel(text)).refusal; };
  EXPECT_THAT(
      refusal("graph g(%a: f32[64,16]) { %v: f32[64,1] = reduce_sum(%a) {axes=[1], keepdims=1} return %v }"),
      HasSubstr("few numbers"));
  EXPECT_THAT(refusal("graph g(%a: f32[64,64]) { %v: f32[1,64] = reduce_sum(%a) {axes=[0], keepdims=1} "
                      "%w: f32[64,64] = mul(%a, %v) return %w }"),
              HasSubstr("innermost"));
  EXPECT_THAT(
      refusal("graph g(%a: i64[64,64]) { %v: i64[64,1] = reduce_sum(%a) {axes=[1], keepdims=1} return %v }"),
      HasSubstr("another type"));
  EXPECT_THAT(refusal("graph g(%a: f32[2,300000]) { %v: f32[2,1] = reduce_sum(%a) {axes=[1], keepdims=1} "
                      "%w: f32[2,300000] = mul(%a, %v) return %w }"),
              HasSubstr("registers"));
}

TEST(CudaRowFolds, Compiles) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  for (const char* text : row_fold_texts) {
    const CudaRowFoldsProblem problem = read_cuda_row_folds(norm_kernel(text)).problem;
    const std::vector<CudaRowFoldsChoice> choices = cuda_row_folds_choices(problem, 8);
    for (const CudaRowFoldsChoice& choice : {choices.front(), choices.back()})
      EXPECT_GT(cuda::compile_cuda(make_cuda_row_folds(problem, choice).source).size(), 1000U)
          << choice.to_string();
  }
}

}  // namespace
}  // namespace sylvite::row_folds_test
