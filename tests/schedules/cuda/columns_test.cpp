#include "schedules/cuda/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/cuda/nvrtc.h"
#include "tests/support/norm_kernels.h"

namespace sylvite {
namespace {

using testing::HasSubstr;

TEST(CudaColumns, ReadsBatchRowsAndColumns) {
  const Reading<CudaColumnsProblem> reading = read_cuda_columns(norm_kernel(column_texts[2]));
  EXPECT_EQ(reading.refusal, "");
  const CudaColumnsProblem& problem = reading.problem;
  EXPECT_EQ(problem.batch, 5);
  EXPECT_EQ(problem.rows, 49);
  EXPECT_EQ(problem.columns, 200);
  ASSERT_EQ(problem.prologue_operands.size(), 2U);
  EXPECT_EQ(problem.prologue_operands[0].batch, 49 * 200);
  EXPECT_EQ(problem.prologue_operands[0].row, 200);
  EXPECT_EQ(problem.prologue_operands[1].batch, 200);
  EXPECT_EQ(problem.prologue_operands[1].row, 0);
  ASSERT_EQ(problem.epilogue_operands.size(), 1U);
  EXPECT_EQ(problem.epilogue_operands[0].batch, 0);
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
      refusal("graph g(%a: f32[4,64]) { %v: f32[64] = reduce_sum(%a) {axes=[0], keepdims=0} return %v }"),
      HasSubstr("short"));
  EXPECT_THAT(
      refusal("graph g(%a: i32[64,64]) { %v: i32[64] = reduce_sum(%a) {axes=[0], keepdims=0} return %v }"),
      HasSubstr("no float"));
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
  for (const char* text : column_texts) {
    const CudaColumnsProblem problem = read_cuda_columns(norm_kernel(text)).problem;
    const CudaTemplate made = make_cuda_columns(problem, cuda_columns_choices(problem).front());
    EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U);
  }
}

}  // namespace
}  // namespace sylvite
