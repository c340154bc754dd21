#include "schedules/cuda/softmax_columns.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"

// Every choice of the template for softmax along columns against the reference interpreter.

namespace sylvite::cuda_softmax_columns_test {
namespace {

class GpuCudaSoftmaxColumns : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaSoftmaxColumns, AgreesWithTheInterpreter) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaSoftmaxColumnsProblem> reading = read_cuda_softmax_columns(kernel);
  ASSERT_EQ(reading.refusal, "");
  const std::vector<Tensor> inputs = normal_inputs(kernel, 5);
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  const double allowed = kernel.body.type(kernel.body.outputs[0]).dtype == DType::f32 ? 1e-5 : 1e-2;
  for (const CudaSoftmaxColumnsChoice& choice : cuda_softmax_columns_choices(reading.problem)) {
    const Tensor result = run_template(make_cuda_softmax_columns(reading.problem, choice), kernel, inputs, 2);
    EXPECT_LT(error_of(result, reference), allowed) << choice.to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Columns, GpuCudaSoftmaxColumns, testing::ValuesIn(softmax_column_texts));

}  // namespace
}  // namespace sylvite::cuda_softmax_columns_test
