// Every schedule space of the GPU against the interpreter.

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "runtime/kernel_runner.h"
#include "schedules/compile.h"
#include "tests/gpu/gpu_test.h"
#include "tests/support/bound_space.h"
#include "tests/support/gpu_cases.h"
#include "tests/support/run_kernel.h"

namespace sylvite::gpu_spaces_test {
namespace {

/// Results may round to neighbouring values of a narrow type.
bool has_narrow_output(const Kernel& kernel) {
  return std::ranges::any_of(kernel.body.outputs, [&](ValueId output) {
    const DType dtype = kernel.body.type(output).dtype;
    return is_half(dtype);
  });
}

/// Activations and results as their layouts have them; weights are packed when they are used.
void store_as_typed(const Kernel& kernel, std::vector<Tensor>& inputs, std::vector<Tensor>& results) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!kernel.input_is_weight.at(i))
      inputs[i] = pack(inputs[i], layout_packing(kernel.body.type(kernel.body.inputs[i])));
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = pack(results[i], layout_packing(kernel.body.type(kernel.body.outputs[i])));
}

class GpuSpaces : public GpuTest, public testing::WithParamInterface<GpuCase> {};

TEST_P(GpuSpaces, AgreeWithTheInterpreter) {
  const Kernel kernel = kernel_of(GetParam().text);
  const Machine machine = with_gpu(detect_machine(1), sample_card());
  std::vector<Tensor> inputs = random_inputs(kernel);
  std::vector<Tensor> expected = interpret(kernel.body, inputs);
  store_as_typed(kernel, inputs, expected);
  std::set<std::string> seen;
  for (const BoundSpace& space : spaces_for(kernel, machine)) {
    for (const Point& point : {space.heuristic, far_point(space)}) {
      const Candidate candidate = space.at(point);
      if (!seen.insert(candidate.to_string()).second) continue;
      const std::string what = kernel.text + candidate.to_string();
      try {
        const std::string object = compile_to_object(kernel, candidate, machine.target);
        ColdWeights weights(inputs, 0);
        KernelRunner runner(kernel, candidate, object, machine.target, inputs, weights, 1);
        runner.call();
        expect_close(runner.outputs(), expected, has_narrow_output(kernel) ? 1e-2 : 2e-5, what);
        EXPECT_GT(runner.time_on_device(4), 0);
      } catch (const Error& error) {
        ADD_FAILURE() << what << "\n" << error.what();
      }
    }
  }
}

TEST_F(GpuTest, ExpTreatsSpecialValuesAsIeeeSays) {
  const Kernel kernel = kernel_of("graph g(%a: f32[24]) { %v: f32[24] = exp(%a) return %v }");
  const Machine machine = with_gpu(detect_machine(1), sample_card());
  Tensor input(DType::f32, {24});
  const double infinity = std::numeric_limits<double>::infinity();
  const double values[] = {infinity, -infinity, std::nan(""), 0,         88.7, 89,   -87, -104,
                           -200,     1e30,      -1e30,        1,         -1,   20,   -20, 50,
                           88.73,    89.5,      90,           91.194286, 92,   93.3, 97,  99.9};
  for (std::int64_t i = 0; i < 24; ++i) input.set_double(i, values[i]);
  const Candidate candidate = default_candidate(kernel, machine);
  const std::vector<Tensor> inputs = {input};
  ColdWeights weights(inputs, 0);
  KernelRunner runner(kernel, candidate, compile_to_object(kernel, candidate, machine.target), machine.target,
                      inputs, weights, 1);
  runner.call();
  expect_close(runner.outputs(), interpret(kernel.body, {input}), 1e-6, "exp");
}

INSTANTIATE_TEST_SUITE_P(, GpuSpaces, testing::ValuesIn(gpu_cases));

}  // namespace
}  // namespace sylvite::gpu_spaces_test
