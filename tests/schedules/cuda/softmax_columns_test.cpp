#include "schedules/cuda/softmax_columns.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedules/cuda/nvrtc.h"
#include "tests/schedules/fixed_machines.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/run_kernel.h"

namespace sylvite::softmax_columns_test {
namespace {

using testing::HasSubstr;

TEST(CudaSoftmaxColumns, ReadsBatchesRowsAndColumns) {
  const Reading<CudaSoftmaxColumnsProblem> reading =
      read_cuda_softmax_columns(norm_kernel(softmax_column_texts[3]));
  EXPECT_EQ(reading.refusal, "");
  const CudaSoftmaxColumnsProblem& problem = reading.problem;
  EXPECT_EQ(problem.batches, 6);
  EXPECT_EQ(problem.rows, 40);
  EXPECT_EQ(problem.columns, 30);
  EXPECT_EQ(problem.prologue_operands.size(), 2U);
  EXPECT_EQ(problem.epilogue_operands.size(), 1U);
  EXPECT_EQ(problem.function, "softmax");
}

/// What every trial on a card is compared with.
TEST(CudaSoftmaxColumns, ReferenceAgrees) {
  for (const char* text : softmax_column_texts) {
    const Kernel kernel = norm_kernel(text);
    const double tolerance = kernel.body.type(kernel.body.outputs[0]).dtype == DType::f32 ? 5e-3 : 2e-2;
    check_candidate(kernel, reference_candidate(kernel), {}, tolerance);
  }
}

TEST(CudaSoftmaxColumns, TheSpaceTakesThem) {
  const Machine machine = fixed_machine("h200");
  for (const char* text : softmax_column_texts)
    EXPECT_EQ(spaces_for(norm_kernel(text), machine).front().name, "cuda_softmax_columns") << text;
}

/// Whichever dim they run along.
TEST(CudaSoftmaxColumns, RunningSumsHaveTemplates) {
  const Machine machine = fixed_machine("h200");
  for (const auto& [axis, space] : {std::pair{1, "cuda_softmax_columns"}, {2, "cuda_norm"}}) {
    const Kernel kernel = norm_kernel(
        fmt::format("graph g(%a: f32[4,256,24]) {{ %v: f32[4,256,24] = cumsum(%a) {{axis={}, exclusive=0, "
                    "reverse=0}} return %v }}",
                    axis));
    EXPECT_EQ(spaces_for(kernel, machine).front().name, space);
    EXPECT_EQ(refuse_product_templates(kernel, machine), "");
  }
}

TEST(CudaSoftmaxColumns, ThreadsHoldWhatFitsTheirRegisters) {
  for (const char* text : softmax_column_texts) {
    const CudaSoftmaxColumnsProblem problem = read_cuda_softmax_columns(norm_kernel(text)).problem;
    for (const CudaSoftmaxColumnsChoice& choice : cuda_softmax_columns_choices(problem)) {
      EXPECT_LE(choice.vector * ((problem.rows + choice.parts - 1) / choice.parts), 128);
      EXPECT_EQ(problem.columns % choice.vector, 0);
      const CudaTemplate made = make_cuda_softmax_columns(problem, choice);
      EXPECT_GE(std::int64_t{made.launch.shape.grid[0]} * choice.threads / choice.parts * choice.vector,
                problem.batches * problem.columns);
    }
  }
}

TEST(CudaSoftmaxColumns, RefusesWithAReason) {
  const auto refusal = [](const char* text) { return read_cuda_softmax_columns(norm_kernel(text)).refusal; };
  EXPECT_THAT(refusal("graph g(%a: f32[2,4097,5]) { %v: f32[2,4097,5] = softmax(%a) {axis=1} return %v }"),
              HasSubstr("registers"));
  EXPECT_THAT(refusal("graph g(%a: f32[2,9]) { %v: f32[2,9] = softmax(%a) {axis=1} return %v }"),
              HasSubstr("beside each other"));
  EXPECT_THAT(
      refusal(
          "graph g(%a: f32[2,9]) { %v: f32[2,9] = cumsum(%a) {axis=1, exclusive=0, reverse=0} return %v }"),
      HasSubstr("beside each other"));
}

TEST(CudaSoftmaxColumns, Compiles) {
  if (!cuda::missing_nvrtc().empty()) GTEST_SKIP() << cuda::missing_nvrtc();
  for (const char* text : softmax_column_texts) {
    const CudaSoftmaxColumnsProblem problem = read_cuda_softmax_columns(norm_kernel(text)).problem;
    const CudaTemplate made =
        make_cuda_softmax_columns(problem, cuda_softmax_columns_choices(problem).front());
    EXPECT_GT(cuda::compile_cuda(made.source).size(), 1000U);
  }
}

}  // namespace
}  // namespace sylvite::softmax_columns_test
