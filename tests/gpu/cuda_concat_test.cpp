#include "schedules/cuda/concat.h"
#include "schedules/packings.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"

// Every choice of the concat template against the reference interpreter.

namespace sylvite {
namespace {

class GpuCudaConcat : public GpuTest, public testing::WithParamInterface<const char*> {};

TEST_P(GpuCudaConcat, AgreesWithTheInterpreter) {
  const Kernel kernel = norm_kernel(GetParam());
  const Reading<CudaConcatProblem> reading = read_cuda_concat(kernel);
  if (!reading.refusal.empty()) GTEST_SKIP() << reading.refusal;
  std::vector<Tensor> inputs = normal_inputs(kernel, 3);
  const auto packing = [&](ValueId id) { return layout_packing(kernel.body.type(id)); };
  const Tensor reference = pack(interpret(kernel.body, inputs).at(0), packing(kernel.body.outputs[0]));
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = pack(inputs[i], packing(kernel.body.inputs[i]));
  for (const int items : {4, 2, 1}) {
    const CudaConcatChoice choice{.items = items};
    const Tensor result = run_template(make_cuda_concat(reading.problem, choice), kernel, inputs, 2);
    EXPECT_LT(error_of(result, reference), 1e-2) << choice.to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Concats, GpuCudaConcat, testing::ValuesIn(concat_texts));

}  // namespace
}  // namespace sylvite
