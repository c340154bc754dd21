// Evaluates nodes whose inputs are all constants. Results that would be much larger than what they are made
// from (a broadcast, a pad) stay as nodes: folding them would trade memory for nothing. So do those that
// would take long.

#include <algorithm>

#include "frontend/graph/evaluation_work.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
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

}  // namespace

Graph fold_constants(const Graph& graph) {
  GraphRewriter rewriter(graph);
  Budget budget = budget_of(graph);
  for (const Node& node : graph.nodes()) {
    rewriter.copy(node);
    Graph& now = rewriter.graph();
    const Node copied = now.nodes().back();
    if (copied.op == Op::to_layout || !worth_folding(now, copied, budget)) continue;
    std::vector<const Tensor*> inputs;
    std::vector<TensorType> output_types;
    inputs.reserve(copied.inputs.size());
    output_types.reserve(copied.outputs.size());
    for (ValueId input : copied.inputs)
      inputs.push_back(input == no_value ? nullptr : &*now.value(input).constant);
    for (ValueId output : copied.outputs) output_types.push_back(now.type(output));
    std::vector<Tensor> results = evaluate_node(copied.op, inputs, copied.attributes, output_types);
    for (std::size_t i = 0; i < results.size(); ++i) {
      rewriter.set(node.outputs[i],
                   now.add_constant(std::move(results[i]), now.value(copied.outputs[i]).name));
    }
  }
  return without_dead_nodes(rewriter.finish());
}

}  // namespace sylvite
