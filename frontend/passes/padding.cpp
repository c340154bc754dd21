#include "frontend/passes/padding.h"

#include <algorithm>

#include "frontend/graph/rewrite.h"

namespace sylvite {

const Node* padding_of(const Graph& graph, ValueId id) {
  const Node* pad = producer_if(graph, id, Op::pad);
  if (pad == nullptr || pad->attributes.string("mode") != "constant") return nullptr;
  const Dims& interior = pad->attributes.integers("interior");
  return std::ranges::all_of(interior, [](std::int64_t between) { return between == 0; }) ? pad : nullptr;
}

bool has_zeros(const Graph& graph, const Node& pad) {
  return pad.inputs.size() < 2 || pad.inputs[1] == no_value || scalar_constant(graph, pad.inputs[1]) == 0.0;
}

}  // namespace sylvite
