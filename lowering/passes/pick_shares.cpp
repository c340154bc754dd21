// Before: y = gather_elements(log_softmax(x), i)   along the innermost dim, few of a row, as a loss takes them
// After:  y = gather_elements(x, i) - m - log(reduce_sum(exp(x - m)))   where m = reduce_max(x)
// and so of softmax, whose elements are exp(x - m) / reduce_sum(exp(x - m)). Folds of the same rows are one kernel, which stores a
// number for each; what softmax makes is as large as x, and would be stored.

#include <algorithm>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t elements_for_one = 8;  // of a row, for each that is taken

/// The softmax or log_softmax of which `gather` takes few elements of each row, and nothing else reads any.
const Node* picked_softmax(const Graph& graph, const IdMap<std::vector<NodeId>>& readers,
                           const Node& gather) {
  if (gather.op != Op::gather_elements) return nullptr;
  const ValueId shares = gather.inputs[0];
  const Node* softmax = producer_if(graph, shares, Op::log_softmax);
  if (softmax == nullptr) softmax = producer_if(graph, shares, Op::softmax);
  if (softmax == nullptr || readers[shares].size() != 1 ||
      std::ranges::find(graph.outputs, shares) != graph.outputs.end())
    return nullptr;
  const TensorType& type = graph.type(softmax->inputs[0]);
  Dims rows = type.dims(), picked = graph.type(gather.inputs[1]).dims();
  const std::int64_t last = type.rank() - 1;
  const bool along_rows =
      softmax->attributes.integer("axis") == last && gather.attributes.integer("axis") == last;
  if (!along_rows || !is_float(type.dtype) || type.dtype == DType::f64 || type.layout != Layout{} ||
      picked.back() * elements_for_one > rows.back())
    return nullptr;
  rows.back() = picked.back() = 1;
  return rows == picked ? softmax : nullptr;
}

}  // namespace

Graph pick_shares(const Graph& graph) {
  const IdMap<std::vector<NodeId>> readers = graph.uses();
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    const Node* softmax = picked_softmax(graph, readers, node);
    if (softmax == nullptr) return false;
    Graph& made = rewriter.graph();
    const TensorType& type = graph.type(softmax->inputs[0]);
    const auto fold = [&](Op op, ValueId id) {
      return made.add(op, {id}, {{"axes", Dims{type.rank() - 1}}, {"keepdims", std::int64_t{1}}}, node.name);
    };
    const ValueId x = rewriter.mapped(softmax->inputs[0]), rows = add_cast(made, x, DType::f32);
    const ValueId most = fold(Op::reduce_max, rows);
    const ValueId sum = fold(Op::reduce_sum, made.add(Op::exp, {made.add(Op::sub, {rows, most})}));
    const ValueId picked =
        made.add(Op::gather_elements, {x, rewriter.mapped(node.inputs[1])}, node.attributes, node.name);
    const ValueId apart = made.add(Op::sub, {add_cast(made, picked, DType::f32), most});
    const ValueId share = softmax->op == Op::softmax ? made.add(Op::div, {made.add(Op::exp, {apart}), sum})
                                                     : made.add(Op::sub, {apart, made.add(Op::log, {sum})});
    rewriter.set(node.outputs[0], add_cast(made, share, graph.type(node.outputs[0]).dtype));
    return true;
  });
}

}  // namespace sylvite
