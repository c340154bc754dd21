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

/// Sums over the few coordinates of a place.
bool folds_coordinates(const Graph& graph, const Node& node) {
  constexpr std::int64_t most = 4;
  if (node.op != Op::reduce_sum) return false;
  const TensorType &from = graph.type(node.inputs[0]), &to = graph.type(node.outputs[0]);
  return from.is_known() && from.element_count() <= most * to.element_count();
}

/// How far a place lies behind the whole number before it: what 16 bits have of both says little of that.
bool is_fraction(const Graph& graph, const Node& node) {
  return node.op == Op::sub && is_f32(graph, node.outputs[0]) &&
         std::ranges::any_of(node.inputs, [&](ValueId id) {
           const NodeId producer = graph.value(id).producer;
           return producer != no_node && graph.node(producer).op == Op::floor;
         });
}

/// Angles of positions are often written as a product of a column and a row.
bool is_outer_product(const Graph& graph, const Node& node) {
  if (node.op != Op::matmul) return false;
  const Extent& folded = graph.type(node.inputs[0]).shape.back();
  return folded.is_known() && folded.constant() == 1;
}

/// Sums over many elements, and logarithms of such: where exponents come from.
bool begins_exponent(const Node& node) {
  return node.op == Op::cumsum || node.op == Op::log;
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
    if (node.outputs.size() != 1 || !is_f32(graph, node.outputs[0])) continue;
    if (!is_elementwise(node) && !folds_coordinates(graph, node)) continue;
    if (is_fraction(graph, node)) become[id] = true;
    const std::vector<NodeId>& readers = uses[node.outputs[0]];
    const auto rounds = [&](NodeId reader) {
      const Node& next = graph.node(reader);
      return become[reader] || (next.op == Op::cast && is_wide_integer(graph.type(next.outputs[0]).dtype));
    };
    const auto multiplies = [&](NodeId reader) { return op_info(graph.node(reader).op).facts.multiplies(); };
    if (std::ranges::any_of(readers, rounds) && std::ranges::none_of(readers, multiplies)) become[id] = true;
  }
  return become;
}

IdMap<bool> become_powers(const Graph& graph) {
  const auto passes_on = [&](const Node& node) {
    if (node.outputs.size() != 1 || !is_f32(graph, node.outputs[0])) return false;
    return begins_exponent(node) || node.op == Op::reduce_max || node.op == Op::where || node.op == Op::neg ||
           node.op == Op::abs || node.op == Op::maximum || node.op == Op::minimum ||
           has_trait(node.op, OpTrait::arithmetic) || has_trait(node.op, OpTrait::movement) ||
           has_trait(node.op, OpTrait::view);
  };
  const IdMap<std::vector<NodeId>> uses = graph.uses();
  IdMap<bool> become(graph.nodes().size(), false);
  // What asks whether a greatest element is infinite takes it as it is.
  const auto compares = [&](const Node& reader) {
    return !reader.outputs.empty() && graph.type(reader.outputs[0]).dtype == DType::boolean;
  };
  // Steps of a chain of sums are often given beside each other.
  const auto is_given = [&](const Node& node) {
    return (has_trait(node.op, OpTrait::movement) || has_trait(node.op, OpTrait::view)) &&
           std::ranges::find(graph.outputs, node.outputs[0]) != graph.outputs.end();
  };
  for (auto id = static_cast<NodeId>(graph.nodes().size()); id-- > 0;) {
    if (!passes_on(graph.node(id))) continue;
    const std::vector<NodeId>& readers = uses[graph.node(id).outputs[0]];
    become[id] =
        (!readers.empty() || is_given(graph.node(id))) && std::ranges::all_of(readers, [&](NodeId reader) {
          return become[reader] || graph.node(reader).op == Op::exp || compares(graph.node(reader));
        });
  }
  IdMap<bool> is_made(graph.values().size(), false);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const bool may = become[static_cast<NodeId>(i)] || (node.op == Op::exp && is_f32(graph, node.outputs[0]));
    const bool is_wide = may && (begins_exponent(node) || std::ranges::any_of(node.inputs, [&](ValueId id) {
                                   return id != no_value && is_made[id];
                                 }));
    become[static_cast<NodeId>(i)] = is_wide;
    if (is_wide && node.op != Op::exp) is_made[node.outputs[0]] = true;
  }
  return become;
}

}  // namespace sylvite
