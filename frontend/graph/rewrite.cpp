#include "frontend/graph/rewrite.h"

#include <cmath>

#include "frontend/values/size_table.h"

namespace sylvite {

void GraphRewriter::replace(const Node& old, Op op, std::vector<ValueId> inputs, Attributes attributes) {
  const std::string& name = source().value(old.outputs[0]).name;
  if (is_mapped(old.outputs[0])) graph().rename(mapped(old.outputs[0]), name + "_before");
  const ValueId now = graph().add(op, std::move(inputs), std::move(attributes), old.name);
  graph().rename(now, name);
  set(old.outputs[0], now);
}

Graph rewrite_nodes(const Graph& graph, const NodeRewrite& rewrite) {
  GraphRewriter rewriter(graph);
  for (const Node& node : graph.nodes())
    if (!rewrite(rewriter, node)) rewriter.leave(node);
  return without_dead_nodes(rewriter.is_unchanged() ? graph : rewriter.finish());
}

bool same_structure(const Graph& a, const Graph& b) {
  if (a.nodes().size() != b.nodes().size() || a.inputs.size() != b.inputs.size() ||
      a.outputs.size() != b.outputs.size()) {
    return false;
  }
  IdMap<ValueId> map(a.values().size(), no_value);
  for (std::size_t i = 0; i < a.inputs.size(); ++i) map[a.inputs[i]] = b.inputs[i];
  const auto same_value = [&](ValueId x, ValueId y) {
    if (x == no_value || y == no_value) return x == y;
    if (a.is_constant(x) != b.is_constant(y) || a.type(x) != b.type(y)) return false;
    if (a.is_constant(x)) return a.value(x).constant->identity() == b.value(y).constant->identity();
    return map[x] == y;
  };
  for (std::size_t i = 0; i < a.nodes().size(); ++i) {
    const Node& x = a.nodes()[i];
    const Node& y = b.nodes()[i];
    if (x.op != y.op || !(x.attributes == y.attributes) || x.inputs.size() != y.inputs.size()) return false;
    for (std::size_t k = 0; k < x.inputs.size(); ++k)
      if (!same_value(x.inputs[k], y.inputs[k])) return false;
    for (std::size_t k = 0; k < x.outputs.size(); ++k) map[x.outputs[k]] = y.outputs[k];
  }
  for (std::size_t i = 0; i < a.outputs.size(); ++i)
    if (!same_value(a.outputs[i], b.outputs[i])) return false;
  return true;
}

const Node* producer_if(const Graph& graph, ValueId id, Op op) {
  if (id == no_value || graph.value(id).producer == no_node) return nullptr;
  const Node& node = graph.node(graph.value(id).producer);
  return node.op == op ? &node : nullptr;
}

std::optional<double> scalar_constant(const Graph& graph, ValueId id) {
  if (!graph.is_constant(id) || graph.value(id).constant->size() != 1) return std::nullopt;
  const Tensor& constant = *graph.value(id).constant;
  return follows_open_sizes(constant) ? std::nullopt : std::optional(constant.as_double(0));
}

bool is_scalar(const Graph& graph, ValueId id, double expected) {
  const std::optional<double> value = scalar_constant(graph, id);
  return value && std::abs(*value - expected) <= 1e-5 * std::abs(expected);
}

Dims folded_axes(const Node& reduction) {
  const Attributes& attributes = reduction.attributes;
  return attributes.has("axes") ? attributes.integers("axes") : Dims{attributes.integer("axis")};
}

Scaled scaled(const Graph& graph, ValueId id) {
  Scaled result{id, 1.0};
  while (true) {
    if (const Node* node = producer_if(graph, result.base, Op::mul)) {
      const int constant_side = scalar_constant(graph, node->inputs[0]) ? 0 : 1;
      const std::optional<double> factor = scalar_constant(graph, node->inputs[constant_side]);
      // A scalar of higher rank could broadcast the base to another shape.
      if (!factor || graph.type(node->inputs[1 - constant_side]).shape != graph.type(result.base).shape)
        return result;
      result = {node->inputs[1 - constant_side], result.factor * *factor};
    } else if (const Node* quotient = producer_if(graph, result.base, Op::div)) {
      const std::optional<double> divisor = scalar_constant(graph, quotient->inputs[1]);
      if (!divisor || !is_float(graph.type(result.base).dtype) ||
          graph.type(quotient->inputs[0]).shape != graph.type(result.base).shape) {
        return result;
      }
      result = {quotient->inputs[0], result.factor / *divisor};
    } else {
      return result;
    }
  }
}

Scaled scaled_as_f32(const Graph& graph, ValueId id) {
  Scaled result = scaled(graph, id);
  while (const Node* narrow = producer_if(graph, result.base, Op::cast)) {
    const DType dtype = graph.type(result.base).dtype;
    const Scaled inside = scaled(graph, narrow->inputs[0]);
    const Node* wide = producer_if(graph, inside.base, Op::cast);
    if (!is_float(dtype) || dtype_size(dtype) != 2 || graph.type(narrow->inputs[0]).dtype != DType::f32 ||
        wide == nullptr || graph.type(wide->inputs[0]).dtype != dtype)
      return result;
    const Scaled next = scaled(graph, wide->inputs[0]);
    result = {next.base, result.factor * inside.factor * next.factor};
  }
  return result;
}

bool either_order(const Node& node, const std::function<bool(ValueId, ValueId)>& match) {
  return match(node.inputs[0], node.inputs[1]) || match(node.inputs[1], node.inputs[0]);
}

}  // namespace sylvite
