#include "schedules/cuda/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "schedules/cuda/nvrtc.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/column_fold_kernels.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/run_kernel.h"

namespace sylvite::columns_test {
namespace {

using testing::HasSubstr;

TEST(CudaColumns, ReadsBatchRowsAndColumns) {
  const Reading<CudaColumnsProblem> reading = read_cuda_columns(norm_kernel(column_texts[2]));
  EXPECT_EQ(reading.refusal, "");
  const CudaColumnsProblem& problem = reading.problem;
  EXPECT_EQ(problem.batch, 5);
  EXPECT_EQ(problem.rows, 49);
  EXPECT_EQ(problem.columns, 200);
  ASSERT_EQ(problem.operands.size(), 2U);
  EXPECT_EQ(problem.operands[0].batch, 49 * 200);
  EXPECT_EQ(problem.operands[0].row, 200);
  EXPECT_EQ(problem.operands[1].batch, 200);
  EXPECT_EQ(problem.operands[1].row, 0);
  ASSERT_EQ(problem.numbers[0].operands.size(), 1U);
  EXPECT_EQ(problem.numbers[0].operands[0].batch, 0);
}

TEST(CudaColumns, OperandsMayBeBroadcastOverSomeRowsAndColumns) {
  const auto operand = [](std::size_t text) {
    const Reading<CudaColumnsProblem> reading = read_cuda_columns(norm_kernel(column_texts[text]));
    EXPECT_EQ(reading.refusal, "");
    return reading.problem.operands.at(1);
  };
  using Digits = std::vector<CudaOperand::Digit>;
  EXPECT_EQ(operand(6).column_digits, (Digits{{16, 0, 1}}));
  EXPECT_EQ(operand(7).column_digits, (Digits{{1, 5, 1}}));
  EXPECT_EQ(operand(8).column_digits, (Digits{{36, 0, 1}}));
  EXPECT_EQ(operand(8).digits, (Digits{{9, 0, 4}}));
}

TEST(CudaColumns, PixelsAreRowsAndChannelsColumns) {
  const Reading<CudaColumnsProblem> reading = read_cuda_columns(norm_kernel(pixel_texts[1]));
  EXPECT_EQ(reading.refusal, "");
  const CudaColumnsProblem& problem = reading.problem;
  EXPECT_EQ(problem.batch, 3);
  EXPECT_EQ(problem.rows, 49);
  EXPECT_EQ(problem.columns, 200);
  ASSERT_EQ(problem.operands.size(), 2U);
  EXPECT_EQ(problem.operands[0].batch, 49 * 200);
  EXPECT_EQ(problem.operands[0].row, 200);
  EXPECT_EQ(problem.operands[0].column, 1);
  EXPECT_EQ(problem.operands[1].batch, 200);
  EXPECT_EQ(problem.operands[1].row, 0);
  ASSERT_EQ(problem.numbers[0].operands.size(), 1U);
  EXPECT_EQ(problem.numbers[0].operands[0].batch, 200);
  EXPECT_EQ(problem.numbers[0].operands[0].column, 1);
  for (const char* text : pixel_texts) EXPECT_EQ(read_cuda_columns(norm_kernel(text)).refusal, "") << text;
}

TEST(CudaColumns, TwoFoldsReadWhatTheyShareOnce) {
  const Reading<CudaColumnsProblem> reading = read_cuda_columns(norm_kernel(twin_column_texts[0]));
  EXPECT_EQ(reading.refusal, "");
  EXPECT_EQ(reading.problem.folds.size(), 2U);
  EXPECT_EQ(reading.problem.operands.size(), 3U);
  const CudaTemplate made = make_cuda_columns(reading.problem, cuda_columns_choices(reading.problem).front());
  EXPECT_EQ(made.launch.pointers, (std::vector<int>{3, 4, 0, 1, 2}));
}

/// What every trial on a card is compared with.
TEST(CudaColumns, ReferenceFoldsPixels) {
  std::vector<const char*> texts(std::begin(pixel_texts), std::end(pixel_texts));
  texts.insert(texts.end(), std::begin(twin_column_texts), std::end(twin_column_texts));
  texts.insert(texts.end(), std::begin(masked_column_texts), std::end(masked_column_texts));
  texts.insert(texts.end(), std::begin(column_fold_texts), std::end(column_fold_texts));
  for (const char* text : texts) {
    const Kernel kernel = norm_kernel(text);
    const bool is_f32 = std::ranges::all_of(
        kernel.body.outputs, [&](ValueId id) { return kernel.body.type(id).dtype == DType::f32; });
    const double tolerance = is_f32 ? 2e-5 : 1e-2;
    check_candidate(kernel, reference_candidate(kernel), {}, tolerance);
  }
}

TEST(CudaColumns, TheSpaceTakesFoldsOfEveryKind) {
  const Machine machine = fixed_machine("h200");
  for (const char* text : column_fold_texts)
    EXPECT_EQ(spaces_for(norm_kernel(text), machine).front().name, "cuda_columns") << text;
}

TEST(CudaColumns, RowsThatAreUsedAgainAreHeldWhereTheyFit) {
  const auto first = [](const char* text) {
    const CudaColumnsProblem problem = read_cuda_columns(norm_kernel(text)).problem;
    return make_cuda_columns(problem, cuda_columns_choices(problem).front()).source.text;
  };
  EXPECT_THAT(first(column_fold_texts[0]), HasSubstr("HELD = true"));
  EXPECT_THAT(first(column_fold_texts[2]), HasSubstr("HELD = true"));
  EXPECT_THAT(first(column_fold_texts[3]), HasSubstr("HELD = false"));
  EXPECT_THAT(first(column_fold_texts[4]), HasSubstr("HELD = false"));
}

TEST(CudaColumns, RefusesWithAReason) {
  const auto refusal = [](const char* text) { return read_cuda_columns(norm_kernel(text)).refusal; };
  EXPECT_THAT(
      refusal("graph g(%a: f32[64,64]) { %v: f32[64] = reduce_sum(%a) {axes=[1], keepdims=0} return %v }"),
      HasSubstr("innermost"));
  EXPECT_THAT(
      refusal(
          "graph g(%a: f32[64,4,64,4]) { %v: f32[4,4] = reduce_sum(%a) {axes=[0,2], keepdims=0} return %v }"),
      HasSubstr("neighbours"));
  EXPECT_THAT(
      refusal("graph g(%a: f32[1,64]) { %v: f32[64] = reduce_sum(%a) {axes=[0], keepdims=0} return %v }"),
      HasSubstr("short"));
  EXPECT_THAT(
      refusal("graph g(%a: i32[64,64]) { %v: i32[64] = reduce_sum(%a) {axes=[0], keepdims=0} return %v }"),
      HasSubstr("another type"));
  EXPECT_THAT(
      refusal("graph g(%a: bf16[2,64,8,8]@c16) { %v: bf16[2,64,1,1]@c16 = reduce_sum(%a) {axes=[2,3], "
              "keepdims=1} return %v }"),
      HasSubstr("blocks"));
  EXPECT_THAT(refusal("graph g(%a: bf16[2,64,8,8]@c64) { %v: bf16[2,1,8,8]@c1 = reduce_sum(%a) {axes=[1], "
                      "keepdims=1} return %v }"),
              HasSubstr("innermost"));
  EXPECT_THAT(refusal("graph g(%a: f32[4096,8,4]) { %v: f32[4096,4] = reduce_sum(%a) {axes=[1], keepdims=0} "
                      "return %v }"),
              HasSubstr("a thread each"));
  EXPECT_THAT(refusal("graph g(%a: bf16[2,64,8,40]@c64) { %v: bf16[2,64,8] = reduce_sum(%a) {axes=[3], "
                      "keepdims=0} return %v }"),
              HasSubstr("lies otherwise"));
  EXPECT_THAT(refusal("graph g(%a: f32[100000,64]) { %s: f32[1,64] = reduce_sum(%a) {axes=[0], keepdims=1} "
                      "%v: f32[100000,64] = sub(%a, %s) return %v }"),
              HasSubstr("few"));
  EXPECT_THAT(refusal("graph g(%a: f32[64,64,64]) { %s: f32[64,64] = reduce_sum(%a) {axes=[1], keepdims=0} "
                      "%v: f32[64,64,64] = sub(%a, %s) return %v }"),
              HasSubstr("than its own"));
}

TEST(CudaColumns, BlocksCoverTheColumns) {
  for (const char* text : column_texts) {
    const CudaColumnsProblem problem = read_cuda_columns(norm_kernel(text)).problem;
    for (const CudaColumnsChoice& choice : cuda_columns_choices(problem)) {
      const CudaTemplate made = make_cuda_columns(problem, choice);
      EXPECT_EQ(made.launch.shape.grid[0] % made.launch.shape.cluster, 0U);
      EXPECT_GE(
          made.launch.shape.grid[0] / made.launch.shape.cluster * static_cast<unsigned>(choice.lanes) * 8,
          problem.batch * problem.columns);
      EXPECT_LE(made.launch.shape.block[0], 1024U);
    }
  }
}

TEST(CudaColumns, Compiles) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  const auto compiles = [](const char* text) {
    const CudaColumnsProblem problem = read_cuda_columns(norm_kernel(text)).problem;
    const CudaTemplate made = make_cuda_columns(problem, cuda_columns_choices(problem).front());
    EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U);
  };
  for (const char* text : column_texts) compiles(text);
  for (const char* text : masked_column_texts) compiles(text);
  for (const char* text : twin_column_texts) compiles(text);
  for (const char* text : pixel_texts) compiles(text);
  for (const char* text : column_fold_texts) compiles(text);
}

}  // namespace
}  // namespace sylvite::columns_test
