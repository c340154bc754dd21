#include "frontend/graph/rewrite.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/error.h"

namespace sylvite {

GraphRewriter::GraphRewriter(const Graph& source) : source_(source), map_(source.values().size(), no_value) {
  graph_.name = source.name;
  for (ValueId input : source.inputs)
    map_[static_cast<std::size_t>(input)] = graph_.add_input(source.value(input).name, source.type(input));
}

ValueId GraphRewriter::mapped(ValueId old) {
  if (old == no_value) return no_value;
  ValueId& now = map_.at(static_cast<std::size_t>(old));
  if (now != no_value) return now;
  const Value& value = source_.value(old);
  if (!value.constant) throw InternalError("value '{}' is read before it is rewritten", value.name);
  now = graph_.add_constant(*value.constant, value.name);
  graph_.value(now).type = value.type;
  return now;
}

std::vector<ValueId> GraphRewriter::mapped(const std::vector<ValueId>& old) {
  std::vector<ValueId> result;
  result.reserve(old.size());
  for (ValueId id : old) result.push_back(mapped(id));
  return result;
}

void GraphRewriter::set(ValueId old, ValueId now) {
  map_.at(static_cast<std::size_t>(old)) = now;
}

void GraphRewriter::copy(const Node& old) {
  const std::vector<ValueId> outputs = graph_.add_node(old.op, mapped(old.inputs), old.attributes, old.name);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    graph_.value(outputs[i]).type = source_.type(old.outputs[i]);
    graph_.rename(outputs[i], source_.value(old.outputs[i]).name);
    set(old.outputs[i], outputs[i]);
  }
}

void GraphRewriter::replace(const Node& old, Op op, std::vector<ValueId> inputs, Attributes attributes) {
  const std::string& name = source_.value(old.outputs[0]).name;
  const ValueId copied = map_.at(static_cast<std::size_t>(old.outputs[0]));
  if (copied != no_value) graph_.rename(copied, name + "_before");
  const ValueId now = graph_.add(op, std::move(inputs), std::move(attributes), old.name);
  graph_.rename(now, name);
  set(old.outputs[0], now);
}

Graph GraphRewriter::finish() {
  for (std::size_t i = 0; i < source_.outputs.size(); ++i) {
    const ValueId now = mapped(source_.outputs[i]);
    if (graph_.type(now).shape != source_.type(source_.outputs[i]).shape ||
        graph_.type(now).dtype != source_.type(source_.outputs[i]).dtype) {
      throw InternalError("a rewrite changed output '{}' from {} to {}", source_.output_name(i),
                          source_.type(source_.outputs[i]).to_string(), graph_.type(now).to_string());
    }
    graph_.outputs.push_back(now);
    graph_.output_names.push_back(source_.output_name(i));
  }
  return without_dead_nodes(graph_);
}

Graph rewrite_nodes(const Graph& graph, const NodeRewrite& rewrite) {
  GraphRewriter rewriter(graph);
  for (const Node& node : graph.nodes())
    if (!rewrite(rewriter, node)) rewriter.copy(node);
  return rewriter.finish();
}

Graph without_dead_nodes(const Graph& graph) {
  std::vector<bool> live(graph.values().size(), false);
  for (ValueId output : graph.outputs) live[static_cast<std::size_t>(output)] = true;
  const auto is_live = [&](ValueId id) { return static_cast<bool>(live[static_cast<std::size_t>(id)]); };
  std::vector<bool> keep(graph.nodes().size(), false);
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    for (ValueId output : node.outputs) keep[i] = keep[i] || is_live(output);
    if (!keep[i]) continue;
    for (ValueId input : node.inputs)
      if (input != no_value) live[static_cast<std::size_t>(input)] = true;
  }
  for (ValueId input : graph.inputs) live[static_cast<std::size_t>(input)] = true;
  for (const Node& node : graph.nodes())  // an output that nobody reads stays with its node
    for (ValueId output : node.outputs)
      live[static_cast<std::size_t>(output)] = keep[static_cast<std::size_t>(graph.value(output).producer)];
  if (std::all_of(live.begin(), live.end(), std::identity())) return graph;
  Graph result;
  result.name = graph.name;
  std::vector<ValueId> map(graph.values().size(), no_value);
  const auto carry = [&](ValueId old) {
    if (old == no_value) return no_value;
    ValueId& now = map[static_cast<std::size_t>(old)];
    if (now == no_value) {
      now = result.add_constant(graph.value(old).constant.value(), graph.value(old).name);
      result.value(now).type = graph.type(old);
    }
    return now;
  };
  for (ValueId input : graph.inputs)
    map[static_cast<std::size_t>(input)] = result.add_input(graph.value(input).name, graph.type(input));
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!keep[i]) continue;
    const Node& node = graph.nodes()[i];
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(carry(input));
    const std::vector<ValueId> outputs =
        result.add_node(node.op, std::move(inputs), node.attributes, node.name);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      result.value(outputs[o]).type = graph.type(node.outputs[o]);
      result.rename(outputs[o], graph.value(node.outputs[o]).name);
      map[static_cast<std::size_t>(node.outputs[o])] = outputs[o];
    }
  }
  for (ValueId output : graph.outputs) result.outputs.push_back(carry(output));
  result.output_names = graph.output_names;
  return result;
}

bool same_structure(const Graph& a, const Graph& b) {
  if (a.nodes().size() != b.nodes().size() || a.inputs.size() != b.inputs.size() ||
      a.outputs.size() != b.outputs.size()) {
    return false;
  }
  std::vector<ValueId> map(a.values().size(), no_value);
  for (std::size_t i = 0; i < a.inputs.size(); ++i) map[static_cast<std::size_t>(a.inputs[i])] = b.inputs[i];
  const auto same_value = [&](ValueId x, ValueId y) {
    if (x == no_value || y == no_value) return x == y;
    if (a.is_constant(x) != b.is_constant(y) || a.type(x) != b.type(y)) return false;
    if (a.is_constant(x)) return a.value(x).constant->identity() == b.value(y).constant->identity();
    return map[static_cast<std::size_t>(x)] == y;
  };
  for (std::size_t i = 0; i < a.nodes().size(); ++i) {
    const Node& x = a.nodes()[i];
    const Node& y = b.nodes()[i];
    if (x.op != y.op || !(x.attributes == y.attributes) || x.inputs.size() != y.inputs.size()) return false;
    for (std::size_t k = 0; k < x.inputs.size(); ++k)
      if (!same_value(x.inputs[k], y.inputs[k])) return false;
    for (std::size_t k = 0; k < x.outputs.size(); ++k)
      map[static_cast<std::size_t>(x.outputs[k])] = y.outputs[k];
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
  return graph.value(id).constant->as_double(0);
}

bool is_scalar(const Graph& graph, ValueId id, double expected) {
  const std::optional<double> value = scalar_constant(graph, id);
  return value && std::abs(*value - expected) <= 1e-5 * std::abs(expected);
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

bool either_order(const Node& node, const std::function<bool(ValueId, ValueId)>& match) {
  return match(node.inputs[0], node.inputs[1]) || match(node.inputs[1], node.inputs[0]);
}

}  // namespace sylvite
