#include "lowering/plan/open_kernel.h"
#include "schedules/cuda/row_folds.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/row_fold_kernels.h"

// Every choice of the template of rows that are folded and used again against the reference interpreter.

namespace sylvite::cuda_row_folds_test {
namespace {

/// Every choice of the template; results that are no f32 within `allowed`.
void expect_agrees(const Kernel& kernel, double allowed) {
  const Reading<CudaRowFoldsProblem> reading = read_cuda_row_folds(kernel);
  ASSERT_EQ(reading.refusal, "");
  const std::vector<Tensor> inputs = normal_inputs(kernel, 3);
  const std::vector<Tensor> references = interpret(kernel.body, inputs);
  for (const CudaRowFoldsChoice& choice : cuda_row_folds_choices(reading.problem, 8)) {
    const std::vector<Tensor> results =
        run_template_outputs(make_cuda_row_folds(reading.problem, choice), kernel, inputs, 2);
    for (std::size_t i = 0; i < references.size(); ++i)
      EXPECT_LT(error_of(results[i], references[i]), references[i].dtype() == DType::f32 ? 1e-4 : allowed)
          << choice.to_string() << ", result " << i;
  }
}

class GpuCudaRowFolds : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaRowFolds, AgreesWithTheInterpreter) {
  expect_agrees(norm_kernel(GetParam()), 2e-2);
}

class GpuOpenRowFolds : public GpuTest {};

/// Rows of runs that are longer and shorter than those the text is made for, and of odd lengths.
TEST_F(GpuOpenRowFolds, FoldsRowsOfAnyLength) {
  const auto folds = [](std::int64_t columns) {
    return norm_kernel(
        fmt::format("graph g(%a: bf16[40,{0}]) {{ %m: bf16[40,1] = reduce_max(%a) {{axes=[1], keepdims=1}}"
                    " %p: i64[40] = arg_min(%a) {{axis=1, keepdims=0, select_last=1}} %c: f32[40,{0}] = "
                    "cast(%a) {{to=\"f32\"}}"
                    " %s: f32[40] = reduce_sum(%c) {{axes=[1], keepdims=0}} return %m, %p, %s }}",
                    columns));
  };
  const Kernel open = generalize(folds(1000), folds(801), Sharing::on_device).value();
  for (const std::int64_t columns : {1000, 7, 8, 801, 50257}) {
    SCOPED_TRACE(columns);
    expect_agrees(as_case(open, folds(columns)).value(), 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, GpuCudaRowFolds, testing::ValuesIn(row_fold_texts));

}  // namespace
}  // namespace sylvite::cuda_row_folds_test
