#include <fmt/format.h>

#include "lowering/plan/open_kernel.h"
#include "schedules/cuda/concat.h"
#include "schedules/packings.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/template_runner.h"
#include "tests/support/norm_kernels.h"

// Every choice of the concat template against the reference interpreter.

namespace sylvite::cuda_concat_test {
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

/// One kernel, whose columns runs give, at two sizes.
TEST_F(GpuTest, ConcatsOfOpenColumnsAgreeWithTheInterpreter) {
  const auto boxes = [](std::int64_t first, std::int64_t second) {
    return norm_kernel(
        fmt::format("graph g(%a: bf16[3,{0},6], %b: bf16[3,{1},6], %c: bf16[3,{1},6]) {{ %v: bf16[3,{2},6] = "
                    "concat(%a, %b, %c) {{axis=1}} "
                    "%s: bf16[3,{2},6] = sigmoid(%v) return %s }}",
                    first, second, first + 2 * second));
  };
  const Kernel open = generalize(boxes(100, 40), boxes(120, 33), Sharing::on_device).value();
  for (const auto& [first, second] : {std::pair{100, 40}, {120, 33}, {65, 63}}) {
    const Kernel kernel = as_case(open, boxes(first, second)).value();
    const Reading<CudaConcatProblem> reading = read_cuda_concat(kernel);
    ASSERT_EQ(reading.refusal, "");
    EXPECT_EQ(reading.problem.unit, 6);
    const std::vector<Tensor> inputs = normal_inputs(kernel, 3);
    const Tensor reference = interpret(kernel.body, inputs).at(0);
    const Tensor result = run_template(make_cuda_concat(reading.problem, {}), kernel, inputs, 2);
    EXPECT_LT(error_of(result, reference), 1e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(Concats, GpuCudaConcat, testing::ValuesIn(concat_texts));

}  // namespace
}  // namespace sylvite::cuda_concat_test
