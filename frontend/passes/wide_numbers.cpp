#include "frontend/passes/wide_numbers.h"

#include <algorithm>

#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

bool is_wide_integer(DType dtype) {
  return !is_float(dtype) && dtype_size(dtype) > 1;
}

bool is_f32(const Graph& graph, ValueId id) {
  return id != no_value && graph.type(id).dtype == DType::f32;
}

bool is_elementwise(const Node& node) {
  return has_trait(node.op, OpTrait::pointwise) || has_trait(node.op, OpTrait::movement);
}

/// Angles of positions are often written as a product of a column and a row.
bool is_outer_product(const Graph& graph, const Node& node) {
  if (node.op != Op::matmul) return false;
  const Extent& folded = graph.type(node.inputs[0]).shape.back();
  return folded.is_known() && folded.constant() == 1;
}

}  // namespace

IdMap<bool> made_of_integers(const Graph& graph) {
  IdMap<bool> made(graph.nodes().size(), false);
  IdMap<bool> is_made(graph.values().size(), false);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (node.outputs.empty() || !is_f32(graph, node.outputs[0])) continue;
    const auto has_integer = [&](ValueId id) {
      return id != no_value && is_wide_integer(graph.type(id).dtype);
    };
    const auto begins = [&] {
      return node.op == Op::iota || (node.op == Op::cast && has_integer(node.inputs[0]));
    };
    const auto is_ready = [&](ValueId id) {
      return !is_f32(graph, id) || is_made[id] || graph.is_constant(id);
    };
    const auto follows = [&] {
      return (is_elementwise(node) || is_outer_product(graph, node)) &&
             std::ranges::all_of(node.inputs, is_ready) &&
             std::ranges::any_of(node.inputs, [&](ValueId id) { return is_f32(graph, id) && is_made[id]; });
    };
    if (!begins() && !follows()) continue;
    made[static_cast<NodeId>(i)] = true;
    for (const ValueId output : node.outputs) is_made[output] = true;
  }
  return made;
}

IdMap<bool> become_integers(const Graph& graph) {
  const IdMap<std::vector<NodeId>> uses = graph.uses();
  IdMap<bool> become(graph.nodes().size(), false);
  for (auto id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    const Node& node = graph.node(id);
    if (node.outputs.size() != 1 || !is_f32(graph, node.outputs[0]) || !is_elementwise(node)) continue;
    const std::vector<NodeId>& readers = uses[node.outputs[0]];
    const auto rounds = [&](NodeId reader) {
      const Node& next = graph.node(reader);
      return become[reader] || (next.op == Op::cast && is_wide_integer(graph.type(next.outputs[0]).dtype));
    };
    const auto multiplies = [&](NodeId reader) { return op_info(graph.node(reader).op).facts.multiplies(); };
    become[id] = std::ranges::any_of(readers, rounds) && std::ranges::none_of(readers, multiplies);
  }
  return become;
}

}  // namespace sylvite
