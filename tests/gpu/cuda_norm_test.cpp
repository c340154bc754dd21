#include "schedules/cuda_norm.h"

#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"

// Every choice of the row template against the reference interpreter.

namespace sylvite {
namespace {

class gpu_cuda_norm : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(gpu_cuda_norm, agrees_with_the_interpreter) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaNormProblem> reading = read_cuda_norm(kernel);
  ASSERT_EQ(reading.refusal, "");
  const std::vector<Tensor> inputs = normal_inputs(kernel, 3);
  const Tensor reference = interpret(kernel.body, inputs).at(0);
  const double allowed = reference.dtype() == DType::f32 ? 1e-5 : 1e-2;
  const bool stored_narrow = kernel.body.type(kernel.body.inputs[0]).dtype != DType::f32;
  for (const CudaNormChoice& choice : cuda_norm_choices(reading.problem)) {
    const Tensor result = run_template(make_cuda_norm(reading.problem, choice), kernel, inputs, 2);
    EXPECT_LT(error_of(result, reference), stored_narrow ? 1e-2 : allowed)
        << choice.threads << " threads, " << choice.rows << " rows";
  }
}

INSTANTIATE_TEST_SUITE_P(norms, gpu_cuda_norm, testing::ValuesIn(norm_texts));

}  // namespace
}  // namespace sylvite
