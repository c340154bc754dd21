// Evaluates nodes whose inputs are all constants. Results that would be much larger than what they are made
// from (a broadcast, a pad) stay as nodes: folding them would trade memory for nothing. So do those that
// would take long. Ahead of that those alone which numbers rounded to integers are made of: what these stand for is not
// constant yet, and can still be seen.

#include <fmt/format.h>

#include <algorithm>

#include "frontend/graph/attribute_text.h"
#include "frontend/graph/evaluation_work.h"
#include "frontend/graph/folded_tables.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/made_weights.h"
#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t always_fold_bytes = std::int64_t{1} << 22;

/// What may be spent on one graph: a few constants can ask for any amount of either.
struct Budget {
  std::int64_t work = std::int64_t{1} << 30;   ///< scalar steps of the reference evaluation
  std::int64_t bytes = std::int64_t{1} << 28;  ///< of results
};

Budget budget_of(const Graph& graph) {
  Budget budget;
  for (const Value& value : graph.values())
    if (value.constant) budget.bytes += 2 * value.constant->byte_size();
  return budget;
}

bool worth_folding(const Graph& graph, const Node& node, Budget& budget) {
  std::int64_t in = 0;
  for (ValueId input : node.inputs) {
    if (input == no_value) continue;
    if (!graph.is_constant(input)) return false;
    in += graph.value(input).constant->byte_size();
  }
  std::int64_t out = 0;
  for (ValueId output : node.outputs) out += graph.type(output).byte_size();
  if (out > std::max(always_fold_bytes, 2 * in) || out > budget.bytes) return false;
  const std::int64_t work = evaluation_work(graph, node);
  if (work > budget.work) return false;
  budget.work -= work;
  budget.bytes -= out;
  return true;
}

/// Is there a node that may be folded?
bool reads_constants_alone(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) {
    return std::ranges::all_of(node.inputs,
                               [&](ValueId input) { return input == no_value || graph.is_constant(input); });
  });
}

/// REQUIRES constant inputs.
std::vector<Tensor> evaluated(const Graph& graph, const Node& node) {
  std::vector<const Tensor*> inputs;
  std::vector<TensorType> output_types;
  inputs.reserve(node.inputs.size());
  output_types.reserve(node.outputs.size());
  for (ValueId input : node.inputs)
    inputs.push_back(input == no_value ? nullptr : &*graph.value(input).constant);
  for (ValueId output : node.outputs) output_types.push_back(graph.type(output));
  return evaluate_node(node.op, inputs, node.attributes, output_types);
}

/// What `evaluated` gives, or gave an earlier import of the same weights.
std::vector<Tensor> folded(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 1 || std::ranges::count(node.inputs, no_value) > 0)
    return evaluated(graph, node);
  std::vector<Tensor> sources;
  sources.reserve(node.inputs.size());
  for (ValueId input : node.inputs) sources.push_back(*graph.value(input).constant);
  const std::string recipe = fmt::format("{} {} {}", op_info(node.op).name, attributes_text(node.attributes),
                                         graph.type(node.outputs[0]).to_string());
  return {made_of(recipe, sources, [&] {
    const Tensor made = evaluated(graph, node).at(0);
    std::vector<TableReading> readings = fold_readings(graph, node);
    return readings.empty() ? made : as_size_table(made, std::move(readings));
  })};
}

/// By node: does it round constants to integers, or is it read by one that does?
std::vector<bool> makes_steps(const Graph& graph) {
  const auto is_any = [](const std::vector<ValueId>& ids, const auto& holds) {
    return std::ranges::any_of(ids, [&](ValueId id) { return id != no_value && holds(id); });
  };
  IdMap<bool> varies(graph.values().size(), false), is_wanted = varies;
  for (std::size_t i = 0; i < graph.values().size(); ++i)
    varies[static_cast<ValueId>(i)] = !graph.values()[i].constant;
  const std::vector<Node>& nodes = graph.nodes();
  for (const Node& node : nodes)
    for (const ValueId output : node.outputs)
      varies[output] = node.inputs.empty() || is_any(node.inputs, [&](ValueId id) { return varies[id]; });
  std::vector<bool> result(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const bool is_read = is_any(nodes[i].outputs, [&](ValueId id) { return is_wanted[id]; });
    const ValueId first = nodes[i].outputs[0];
    const bool is_step = nodes[i].op == Op::round && !is_float(graph.type(first).dtype);
    result[i] = is_read || (is_step && !varies[first]);
    if (!result[i]) continue;
    for (const ValueId input : nodes[i].inputs)
      if (input != no_value) is_wanted[input] = true;
  }
  return result;
}

/// Evaluates those of these nodes whose inputs are constants by then.
Graph fold(const Graph& graph, const std::vector<bool>& wanted) {
  GraphRewriter rewriter(graph);
  Budget budget = budget_of(graph);
  for (std::size_t node_id = 0; node_id < wanted.size(); ++node_id) {
    const Node& node = graph.nodes()[node_id];
    rewriter.copy(node);
    Graph& now = rewriter.graph();
    const Node copied = now.nodes().back();
    if (!wanted[node_id] || copied.op == Op::to_layout || !worth_folding(now, copied, budget)) continue;
    std::vector<Tensor> results = folded(now, copied);
    for (std::size_t i = 0; i < results.size(); ++i) {
      rewriter.set(node.outputs[i],
                   now.add_constant(std::move(results[i]), now.value(copied.outputs[i]).name));
    }
  }
  return without_dead_nodes(rewriter.finish());
}

}  // namespace

Graph fold_constants(const Graph& graph) {
  if (!reads_constants_alone(graph)) return graph;
  return fold(graph, std::vector<bool>(graph.nodes().size(), true));
}

Graph fold_steps(const Graph& graph) {
  const std::vector<bool> wanted = makes_steps(graph);
  return std::ranges::find(wanted, true) == wanted.end() ? graph : fold(graph, wanted);
}

}  // namespace sylvite
