// Before: y = reduce_sum(softmax(x) * w)   along one axis, as an expected depth or place is
// After:  y = reduce_sum(e * w) / reduce_sum(e)   where e = exp(x - reduce_max(x))
// Folds of the same rows are one kernel, which reads x once; what softmax makes is as large as x, and would be stored. The channels
// of an image that lies with its channels innermost are rows between transposes that move nothing.

#include <algorithm>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

struct Expectation {
  ValueId x = no_value, weights = no_value;
  std::int64_t axis = 0;
};

std::optional<Expectation> match_expectation(const Graph& graph, const IdMap<std::vector<NodeId>>& readers,
                                             const Node& sum) {
  if (sum.op != Op::reduce_sum || sum.attributes.integers("axes").size() != 1) return std::nullopt;
  const std::int64_t axis = sum.attributes.integers("axes")[0];
  const Node* mul = producer_if(graph, sum.inputs[0], Op::mul);
  if (mul == nullptr || readers[sum.inputs[0]].size() != 1) return std::nullopt;
  std::optional<Expectation> found;
  const auto is_one = [&](ValueId shares, ValueId weights) {
    const Node* softmax = producer_if(graph, shares, Op::softmax);
    if (softmax == nullptr || readers[shares].size() != 1 ||
        std::ranges::find(graph.outputs, shares) != graph.outputs.end() ||
        softmax->attributes.integer("axis") != axis || graph.type(shares) != graph.type(sum.inputs[0]))
      return false;
    found = Expectation{softmax->inputs[0], weights, axis};
    return true;
  };
  return either_order(*mul, is_one) ? found : std::nullopt;
}

/// In f32, the axis behind all others; of one number, as it is.
ValueId add_wide_rows(Graph& graph, ValueId id, const Dims& perm) {
  const ValueId wide = add_cast(graph, id, DType::f32);
  return graph.type(id).element_count() == 1 ? wide : add_transpose(graph, wide, perm);
}

Dims order_with_last(std::int64_t axis, std::int64_t rank) {
  Dims perm;
  for (std::int64_t d = 0; d < rank; ++d)
    if (d != axis) perm.push_back(d);
  perm.push_back(axis);
  return perm;
}

}  // namespace

Graph divide_expectations(const Graph& graph, bool tf32) {
  const IdMap<bool> images = innermost_images(graph, tf32);
  const IdMap<std::vector<NodeId>> readers = graph.uses();
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    const std::optional<Expectation> found = match_expectation(graph, readers, node);
    if (!found) return false;
    const TensorType &type = graph.type(found->x), &weights = graph.type(found->weights);
    const std::int64_t rank = type.rank(), last = rank - 1;
    const bool are_rows = found->axis == last || (found->axis == 1 && images[found->x]);
    if (!are_rows || !is_float(type.dtype) || type.dtype == DType::f64) return false;
    if (weights.element_count() != 1 && weights.rank() != rank) return false;
    Graph& made = rewriter.graph();
    const Dims perm = order_with_last(found->axis, rank);
    const auto fold = [&](Op op, ValueId id) {
      return made.add(op, {id}, {{"axes", Dims{last}}, {"keepdims", std::int64_t{1}}}, node.name);
    };
    const ValueId rows = add_wide_rows(made, rewriter.mapped(found->x), perm);
    const ValueId apart = made.add(Op::sub, {rows, fold(Op::reduce_max, rows)});
    const ValueId terms = made.add(Op::exp, {apart});
    const ValueId weighed =
        made.add(Op::mul, {terms, add_wide_rows(made, rewriter.mapped(found->weights), perm)});
    const ValueId mean = made.add(Op::div, {fold(Op::reduce_sum, weighed), fold(Op::reduce_sum, terms)});
    rewriter.set(node.outputs[0],
                 add_reshape(made, add_cast(made, mean, type.dtype), graph.type(node.outputs[0]).dims()));
    return true;
  });
}

}  // namespace sylvite
