// Before: y = broadcast_to(sqrt(reduce_sum(x)))     x [images, groups, 8], and y, as what channels of a group share
// After:  y = sqrt(reduce_sum(broadcast_to(x)))      of [images, groups, 8, 8]: each channel adds up its group
// A launch less: adding up a few numbers again takes no time, and no kernel of a fold makes more than it folds.

#include <algorithm>
#include <vector>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_folded = 64;
constexpr std::int64_t most_read = 1 << 21;  ///< elements, each as often as its row is long
constexpr std::size_t most_steps = 8;        ///< of work behind the fold

/// A sum of each row of `dims`, few and short.
bool is_sum_of_rows(const Graph& graph, const Node& node, const Dims& dims) {
  const TensorType& type = graph.type(node.inputs[0]);
  return node.op == Op::reduce_sum && node.attributes.integer("keepdims") == 1 && type.is_known() &&
         type.dims() == dims && dims.back() > 1 && dims.back() <= most_folded &&
         type.element_count() * dims.back() <= most_read &&
         node.attributes.integers("axes") == Dims{static_cast<std::int64_t>(dims.size()) - 1};
}

bool told_by_folds(GraphRewriter& rewriter, const Node& node, const IdMap<std::vector<NodeId>>& uses) {
  const Graph& source = rewriter.source();
  if (node.op != Op::broadcast_to || !source.type(node.outputs[0]).is_known()) return false;
  const Dims dims = source.type(node.outputs[0]).dims();
  std::vector<const Node*> work;  // the last first
  const Node* fold = nullptr;
  for (ValueId id = node.inputs[0]; fold == nullptr && work.size() < most_steps;) {
    const NodeId producer = source.value(id).producer;
    if (producer == no_node || uses[id].size() != 1 || dims.empty()) return false;
    const Node& each = source.node(producer);
    if (is_sum_of_rows(source, each, dims)) {
      fold = &each;
      break;
    }
    id = operand_beside_numbers(source, each);
    if (id == no_value) return false;
    work.push_back(&each);
  }
  if (fold == nullptr) return false;
  Graph& graph = rewriter.graph();
  Dims rows = dims, all = dims;
  rows.insert(rows.end() - 1, 1);
  all.push_back(dims.back());
  const ValueId again = graph.add(
      Op::broadcast_to, {add_reshape(graph, rewriter.mapped(fold->inputs[0]), rows)}, {{"shape", all}});
  ValueId made = graph.add(
      Op::reduce_sum, {again},
      {{"axes", Dims{static_cast<std::int64_t>(dims.size())}}, {"keepdims", std::int64_t{0}}}, fold->name);
  ValueId before = fold->outputs[0];
  for (auto each = work.rbegin(); each != work.rend(); ++each) {
    std::vector<ValueId> inputs;
    for (const ValueId input : (*each)->inputs)
      inputs.push_back(input == before ? made : rewriter.mapped(input));
    made = graph.add((*each)->op, std::move(inputs), (*each)->attributes, (*each)->name);
    before = (*each)->outputs[0];
  }
  rewriter.set(node.outputs[0], made);
  return true;
}

}  // namespace

Graph spread_folds(const Graph& graph) {
  IdMap<std::vector<NodeId>> uses = graph.uses();
  for (const ValueId output : graph.outputs) uses[output].push_back(no_node);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return told_by_folds(rewriter, node, uses); });
}

}  // namespace sylvite
