#include "lowering/plan_interpreter.h"

#include "base/error.h"
#include "frontend/interpreter.h"
#include "lowering/memory_plan.h"

namespace sylvite {

std::vector<Tensor> interpret_plan(const Plan& plan, const std::vector<Tensor>& inputs) {
  if (inputs.size() != plan.inputs.size()) {
    throw InputError("plan '{}' takes {} inputs, got {}", plan.name, plan.inputs.size(), inputs.size());
  }
  std::vector<Tensor> roots(plan.buffers.size());
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (plan.buffers[i].kind == BufferKind::weight)
      roots[i] = plan.weights.at(static_cast<std::size_t>(plan.buffers[i].index));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) roots[static_cast<std::size_t>(plan.inputs[i])] = inputs[i];
  auto read = [&](BufferId id) {
    const Tensor& root = roots[static_cast<std::size_t>(root_of(plan, id))];
    return root.reshaped(plan.buffers[static_cast<std::size_t>(id)].type.dims());
  };
  for (const Launch& launch : plan.launches) {
    const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(launch.kernel));
    const std::size_t count = kernel.body.inputs.size();
    std::vector<Tensor> arguments;
    for (std::size_t i = 0; i < count; ++i) arguments.push_back(read(launch.arguments[i]));
    const std::vector<Tensor> results = interpret(kernel.body, arguments);
    for (std::size_t i = 0; i < results.size(); ++i) {
      roots[static_cast<std::size_t>(root_of(plan, launch.arguments[count + i]))] = results[i];
    }
  }
  std::vector<Tensor> outputs;
  for (BufferId output : plan.outputs) outputs.push_back(read(output));
  return outputs;
}

}  // namespace sylvite
