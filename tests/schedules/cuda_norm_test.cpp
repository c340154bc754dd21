#include "schedules/cuda_norm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/norm_kernels.h"

namespace sylvite {
namespace {

using testing::HasSubstr;

TEST(CudaNorm, ReadsWhereOperandsLie) {
  const Reading<CudaNormProblem> reading = read_cuda_norm(norm_kernel(norm_texts[1]));
  EXPECT_EQ(reading.refusal, "");
  const CudaNormProblem& problem = reading.problem;
  EXPECT_EQ(problem.rows, 3 * 7);
  EXPECT_EQ(problem.columns, 768);
  EXPECT_TRUE(problem.is_centred);
  ASSERT_EQ(problem.prologue_operands.size(), 2U);
  EXPECT_EQ(problem.prologue_operands[0].row, 768);
  EXPECT_EQ(problem.prologue_operands[1].row, 0);
  EXPECT_EQ(problem.prologue_operands[1].column, 1);
  EXPECT_EQ(vector_of(problem), 4);  // 16 bytes of the result
}

TEST(CudaNorm, HoldsARowInFewRegisters) {
  for (const char* text : norm_texts) {
    const CudaNormProblem problem = read_cuda_norm(norm_kernel(text)).problem;
    const std::vector<CudaNormChoice> choices = cuda_norm_choices(problem);
    ASSERT_FALSE(choices.empty()) << text;
    for (const CudaNormChoice& choice : choices) {
      const CudaTemplate made = make_cuda_norm(problem, choice);
      EXPECT_EQ(made.threads, static_cast<unsigned>(choice.threads * choice.rows));
      EXPECT_LE((problem.columns + choice.threads - 1) / choice.threads, 64);
    }
  }
}

TEST(CudaNorm, RefusesWithAReason) {
  const auto refusal = [](const char* text) { return read_cuda_norm(norm_kernel(text)).refusal; };
  EXPECT_THAT(refusal("graph g(%a: f32[4,6]) { %v: f32[4,6] = softmax(%a) {axis=1} return %v }"),
              HasSubstr("no layer"));
  EXPECT_THAT(
      refusal(
          "graph g(%a: f32[4,6,8], %s: f32[6,8]) { %v: f32[4,6,8] = rms_norm(%a, %s) {axis=1} return %v }"),
      HasSubstr("innermost"));
  EXPECT_THAT(refusal("graph g(%a: f32[2,99999], %s: f32[99999]) { %v: f32[2,99999] = rms_norm(%a, %s) "
                      "{axis=1} return %v }"),
              HasSubstr("registers"));
}

}  // namespace
}  // namespace sylvite
