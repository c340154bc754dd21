#include "lowering/passes/alone.h"

#include <string>
#include <utility>

namespace sylvite {

Kernel kernel_alone(const Graph& graph, const Node& node) {
  Graph body;
  std::vector<ValueId> inputs;
  std::vector<bool> is_weight;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == no_value) continue;
    inputs.push_back(body.add_input("x" + std::to_string(i), graph.type(node.inputs[i])));
    is_weight.push_back(graph.is_constant(node.inputs[i]));
  }
  body.outputs = {body.add(node.op, inputs, node.attributes)};
  return make_kernel(body, std::move(is_weight));
}

}  // namespace sylvite
