#include "schedules/cuda/row_folds.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"
#include "tests/support/row_fold_kernels.h"

// Every choice of the template of rows that are folded and used again against the reference interpreter.

namespace sylvite::cuda_row_folds_test {
namespace {

class GpuCudaRowFolds : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaRowFolds, AgreesWithTheInterpreter) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaRowFoldsProblem> reading = read_cuda_row_folds(kernel);
  ASSERT_EQ(reading.refusal, "");
  const std::vector<Tensor> inputs = normal_inputs(kernel, 3);
  const std::vector<Tensor> references = interpret(kernel.body, inputs);
  for (const CudaNormChoice& choice : cuda_row_folds_choices(reading.problem)) {
    const std::vector<Tensor> results =
        run_template_outputs(make_cuda_row_folds(reading.problem, choice), kernel, inputs, 2);
    for (std::size_t i = 0; i < references.size(); ++i) {
      const double allowed = references[i].dtype() == DType::f32 ? 1e-4 : 2e-2;
      EXPECT_LT(error_of(results[i], references[i]), allowed) << choice.to_string() << ", result " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gradients, GpuCudaRowFolds, testing::ValuesIn(row_fold_texts));

}  // namespace
}  // namespace sylvite::cuda_row_folds_test
