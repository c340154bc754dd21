#include "schedules/cuda/row_folds.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/row_fold_kernels.h"

// Every choice of the template of rows that are folded and used again against the reference interpreter.

namespace sylvite {
namespace {

class GpuCudaRowFolds : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaRowFolds, AgreesWithTheInterpreter) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaRowFoldsProblem> reading = read_cuda_row_folds(kernel);
  ASSERT_EQ(reading.refusal, "");
  const std::vector<Tensor> inputs = normal_inputs(kernel, 3);
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  const double allowed = reference.dtype() == DType::f32 ? 1e-4 : 2e-2;
  for (const CudaNormChoice& choice : cuda_row_folds_choices(reading.problem)) {
    const Tensor result = run_template(make_cuda_row_folds(reading.problem, choice), kernel, inputs, 2);
    EXPECT_LT(error_of(result, reference), allowed) << choice.to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, GpuCudaRowFolds, testing::ValuesIn(row_fold_texts));

}  // namespace
}  // namespace sylvite
