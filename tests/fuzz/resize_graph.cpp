#include "tests/fuzz/resize_graph.h"

#include <set>

#include "base/error.h"
#include "lowering/plan/open_kernel.h"

namespace sylvite::fuzz {
namespace {

std::int64_t replaced(std::int64_t extent, std::int64_t from, std::int64_t to) {
  if (extent == from) return to;
  return extent > from && extent % from == 0 ? extent / from * to : extent;
}

std::vector<std::int64_t> replaced(std::vector<std::int64_t> extents, std::int64_t from, std::int64_t to) {
  for (std::int64_t& extent : extents) extent = replaced(extent, from, to);
  return extents;
}

/// Extents in attributes are those of shapes; other lists are strides, axes and the like.
Attributes resized(const Node& node, std::int64_t from, std::int64_t to) {
  Attributes result = node.attributes;
  for (const char* name : {"shape", "sizes"})
    if (result.has(name)) result.set(name, replaced(result.integers(name), from, to));
  return result;
}

/// Throws what the rules of the operations throw.
Graph resized(const Graph& graph, std::int64_t from, std::int64_t to) {
  Graph result;
  std::map<ValueId, ValueId> map;
  const auto mapped = [&](ValueId id) {
    if (id == no_value) return no_value;
    if (const auto found = map.find(id); found != map.end()) return found->second;
    return map[id] = result.add_constant(*graph.value(id).constant);
  };
  for (const ValueId input : graph.inputs) {
    TensorType type = graph.type(input);
    type.shape = Shape(replaced(type.dims(), from, to));
    map[input] = result.add_input(graph.value(input).name, type);
  }
  for (const Node& node : graph.nodes()) {
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs) inputs.push_back(mapped(id));
    const std::vector<ValueId> outputs = result.add_node(node.op, inputs, resized(node, from, to), node.name);
    for (std::size_t i = 0; i < outputs.size(); ++i) map[node.outputs[i]] = outputs[i];
  }
  for (const ValueId output : graph.outputs) result.outputs.push_back(mapped(output));
  return result;
}

}  // namespace

std::vector<Graph> resized_graphs(const Graph& graph) {
  std::set<std::int64_t> extents;
  for (const ValueId input : graph.inputs)
    for (const std::int64_t extent : graph.type(input).dims())
      if (extent > 1) extents.insert(extent);
  std::vector<Graph> results;
  for (const std::int64_t extent : extents) {
    const std::int64_t other = size_class(extent + 1) == size_class(extent) ? extent + 1 : extent - 1;
    if (size_class(other) != size_class(extent)) continue;
    try {
      results.push_back(resized(graph, extent, other));
    } catch (const Error&) {
      continue;  // the model holds constants that only fit its own sizes
    }
  }
  return results;
}

}  // namespace sylvite::fuzz
