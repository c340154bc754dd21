#include "schedules/cuda/transpose.h"
#include "schedules/packings.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"

// Every choice of the transpose template against the reference interpreter.

namespace sylvite::cuda_transpose_test {
namespace {

class GpuCudaTranspose : public GpuTest, public testing::WithParamInterface<const char*> {};

/// Of numbers that repeat after `period`, `step` apart, around `middle` steps.
void check_choices(const Kernel& kernel, std::int64_t period, double middle, double step, double allowed) {
  const Reading<CudaTransposeProblem> reading = read_cuda_transpose(kernel);
  ASSERT_EQ(reading.refusal, "");
  Tensor input(kernel.body.type(kernel.body.inputs[0]).dtype, kernel.body.type(kernel.body.inputs[0]).dims());
  for (std::int64_t i = 0; i < input.size(); ++i)
    input.set_double(i, (static_cast<double>(i % period) - middle) * step);
  const auto packing = [&](ValueId id) { return layout_packing(kernel.body.type(id)); };
  const Tensor reference = pack(interpret(kernel.body, {input}).at(0), packing(kernel.body.outputs[0]));
  input = pack(input, packing(kernel.body.inputs[0]));
  for (const CudaTransposeChoice& choice : cuda_transpose_choices(reading.problem)) {
    const Tensor result = run_template(make_cuda_transpose(reading.problem, choice), kernel, {input}, 2);
    EXPECT_LE(error_of(result, reference), allowed) << choice.to_string();
  }
}

TEST_P(GpuCudaTranspose, AgreesWithTheInterpreter) {
  check_choices(norm_kernel(GetParam()), 251, 0, 1, 0);
}

class GpuCudaWorkedTranspose : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaWorkedTranspose, AgreesWithTheInterpreter) {
  const Kernel kernel = norm_kernel(GetParam());
  const bool is_narrow = kernel.body.type(kernel.body.outputs[0]).dtype != DType::f32;
  check_choices(kernel, 1009, 500, 1. / 128, is_narrow ? 1e-2 : 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Works, GpuCudaWorkedTranspose, testing::ValuesIn(worked_transpose_texts));
INSTANTIATE_TEST_SUITE_P(Transposes, GpuCudaTranspose, testing::ValuesIn(transpose_texts));

}  // namespace
}  // namespace sylvite::cuda_transpose_test
