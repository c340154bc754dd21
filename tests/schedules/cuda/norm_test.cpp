#include "schedules/cuda/norm.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/cuda/nvrtc.h"
#include "tests/support/norm_kernels.h"

namespace sylvite::norm_test {
namespace {

using testing::HasSubstr;

TEST(CudaNorm, ReadsWhereOperandsLie) {
  const Reading<CudaNormProblem> reading = read_cuda_norm(norm_kernel(norm_texts[1]));
  EXPECT_EQ(reading.refusal, "");
  const CudaNormProblem& problem = reading.problem;
  EXPECT_EQ(problem.rows, 3 * 7);
  EXPECT_EQ(problem.columns, 768);
  EXPECT_EQ(problem.function, "layer_norm");
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
      EXPECT_EQ(made.launch.shape.block[0], static_cast<unsigned>(choice.threads * choice.rows));
      EXPECT_LE((problem.columns + choice.threads - 1) / choice.threads, 64);
    }
  }
}

TEST(CudaNorm, RefusesWithAReason) {
  const auto refusal = [](const char* text) { return read_cuda_norm(norm_kernel(text)).refusal; };
  EXPECT_THAT(
      refusal("graph g(%a: f32[4,6]) { %v: f32[4] = reduce_sum(%a) {axes=[1], keepdims=0} return %v }"),
      HasSubstr("neither a normalisation"));
  EXPECT_THAT(
      refusal(
          "graph g(%a: f32[4,6,8], %s: f32[6,8]) { %v: f32[4,6,8] = rms_norm(%a, %s) {axis=1} return %v }"),
      HasSubstr("innermost"));
  EXPECT_THAT(refusal("graph g(%a: f32[2,99999], %s: f32[99999]) { %v: f32[2,99999] = rms_norm(%a, %s) "
                      "{axis=1} return %v }"),
              HasSubstr("registers"));
}

TEST(CudaNorm, ReadsSoftmaxAndPointwiseWork) {
  const CudaNormProblem softmax = read_cuda_norm(norm_kernel(norm_texts[7])).problem;
  EXPECT_EQ(softmax.function, "softmax");
  EXPECT_EQ(softmax.rows, 3 * 70);
  EXPECT_EQ(softmax.prologue_operands.size(), 2U);
  EXPECT_EQ(softmax.epilogue_operands.size(), 1U);
  const CudaNormProblem work = read_cuda_norm(norm_kernel(norm_texts[11])).problem;
  EXPECT_EQ(work.function, "keep");
  EXPECT_EQ(work.prologue_operands.size(), 3U);
  EXPECT_TRUE(work.epilogue_operands.empty());
}

TEST(CudaNorm, OperandsMayBeBroadcastOverSomeRows) {
  const auto digits_of = [](const CudaOperand& operand) {
    std::string text;
    for (const CudaOperand::Digit& digit : operand.digits)
      text += fmt::format("{}*(row/{}%{})", digit.stride, digit.divisor, digit.extent);
    return text;
  };
  const Kernel modulated = norm_kernel(R"(graph g(%a: bf16[3,7,256], %s: bf16[3,1,256], %t: bf16[1,7,256]) {
    %v: bf16[3,7,256] = layer_norm(%a) {axis=2} %m: bf16[3,7,256] = mul(%v, %s)
    %r: bf16[3,7,256] = add(%m, %t) return %r })");
  const Reading<CudaNormProblem> norm = read_cuda_norm(modulated);
  ASSERT_EQ(norm.refusal, "");
  EXPECT_EQ(digits_of(norm.problem.epilogue_operands.at(0)), "256*(row/7%0)");
  EXPECT_EQ(digits_of(norm.problem.epilogue_operands.at(1)), "256*(row/1%7)");
  const Kernel gated = norm_kernel(R"(graph g(%a: f32[2,3,5,130], %b: f32[2,1,5,130], %c: f32[1,3,1,1]) {
    %x: f32[2,3,5,130] = add(%a, %b) %v: f32[2,3,5,130] = softmax(%x) {axis=3}
    %m: f32[2,3,5,130] = mul(%v, %c) return %m })");
  const Reading<CudaNormProblem> softmax = read_cuda_norm(gated);
  ASSERT_EQ(softmax.refusal, "");
  EXPECT_EQ(digits_of(softmax.problem.prologue_operands.at(1)), "130*(row/1%5)650*(row/15%0)");
  EXPECT_EQ(digits_of(softmax.problem.epilogue_operands.at(0)), "1*(row/5%3)");
}

TEST(CudaNorm, Compiles) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  std::vector<const char*> texts(std::begin(norm_texts), std::end(norm_texts));
  texts.insert(texts.end(), std::begin(masked_norm_texts), std::end(masked_norm_texts));
  for (const char* text : texts) {
    const CudaNormProblem problem = read_cuda_norm(norm_kernel(text)).problem;
    const std::vector<CudaNormChoice> choices = cuda_norm_choices(problem);
    for (const CudaNormChoice& choice : {choices.front(), choices.back()}) {
      const CudaTemplate made = make_cuda_norm(problem, choice);
      EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U) << choice.to_string();
    }
  }
}

}  // namespace
}  // namespace sylvite::norm_test
