#include "schedules/cuda/image_norm.h"
#include "schedules/packings.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"

// Every choice of the template for groups of channels against the reference interpreter.

namespace sylvite::cuda_image_norm_test {
namespace {

class GpuCudaImageNorm : public GpuTest {};
class GpuCudaImageNormKernels : public GpuTest, public testing::WithParamInterface<const char*> {};

/// Results of every choice beside the interpreter's, of numbers with the given mean.
void check_choices(const Kernel& kernel, double mean, double allowed) {
  const Reading<CudaImageNormProblem> reading = read_cuda_image_norm(kernel);
  ASSERT_EQ(reading.refusal, "");
  std::vector<Tensor> inputs = normal_inputs(kernel, 3);
  for (std::int64_t i = 0; i < inputs[0].size(); ++i) inputs[0].set_double(i, inputs[0].as_double(i) + mean);
  const Tensor reference =
      pack(interpret(kernel.body, inputs).at(0), layout_packing(kernel.body.type(kernel.body.outputs[0])));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = pack(inputs[i], layout_packing(kernel.body.type(kernel.body.inputs[i])));
  for (const CudaImageNormChoice& choice : cuda_image_norm_choices(reading.problem)) {
    const CudaTemplate text = make_cuda_image_norm(reading.problem, choice);
    const Tensor result = run_template(text, kernel, inputs, 2);
    EXPECT_LT(error_of(result, reference), allowed) << choice.to_string();
    EXPECT_EQ(error_of(run_template(text, kernel, inputs), result), 0)
        << choice.to_string() << " gives another result each time";
  }
}

TEST_P(GpuCudaImageNormKernels, AgreesWithTheInterpreter) {
  const Kernel kernel = norm_kernel(GetParam());
  check_choices(kernel, 0, kernel.body.type(kernel.body.inputs[0]).dtype == DType::f32 ? 1e-5 : 1e-2);
}

INSTANTIATE_TEST_SUITE_P(Images, GpuCudaImageNormKernels, testing::ValuesIn(image_norm_texts));

TEST_F(GpuCudaImageNorm, AMeanFarFromZeroCostsNoDigits) {
  check_choices(
      norm_kernel("graph g(%a: f32[2,16,30,20]@c16) { %v: f32[2,16,30,20]@c16 = layer_norm(%a) {axis=1, "
                  "groups=4} return %v }"),
      3000, 1e-3);
}

}  // namespace
}  // namespace sylvite::cuda_image_norm_test
