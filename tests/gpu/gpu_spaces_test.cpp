// Every schedule space of the GPU against the interpreter.

#include <set>

#include "runtime/kernel_runner.h"
#include "schedules/compile.h"
#include "tests/gpu/gpu_test.h"
#include "tests/support/gpu_cases.h"
#include "tests/support/run_kernel.h"

namespace sylvite {
namespace {

class gpu_spaces : public GpuTest, public testing::WithParamInterface<GpuCase> {};

TEST_P(gpu_spaces, agree_with_the_interpreter) {
  const Kernel kernel = kernel_of(GetParam().text);
  const Machine machine = with_gpu(detect_machine(1), sample_gpu());
  const std::vector<Tensor> inputs = random_inputs(kernel);
  const std::vector<Tensor> expected = interpret(kernel.body, inputs);
  std::set<std::string> seen;
  for (const Space* space : spaces_for(kernel, machine)) {
    for (const Point& point : {space->heuristic(kernel, machine), far_point(*space, kernel, machine)}) {
      const Candidate candidate = space->at(kernel, machine, point);
      if (!seen.insert(candidate.to_string()).second) continue;
      const std::string what = kernel.text + candidate.to_string();
      try {
        const std::string object = compile_to_object(kernel, candidate, machine.target);
        ColdWeights weights(inputs, 0);
        KernelRunner runner(kernel, candidate, object, machine.target, inputs, weights, 1);
        runner.call();
        expect_close(runner.outputs(), expected, 2e-5, what);
        EXPECT_GT(runner.time_on_device(4), 0);
      } catch (const Error& error) {
        ADD_FAILURE() << what << "\n" << error.what();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, gpu_spaces, testing::ValuesIn(gpu_cases));

}  // namespace
}  // namespace sylvite
