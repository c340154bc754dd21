// reduce_sum over one short axis along which its operand is put together becomes sums of the parts:
//   reduce_sum(concat(a, b), axis)            -> a + b
//   reduce_sum(reshape(x, [.., 2, n, ..]))    -> x[first n] + x[last n]
//   reduce_sum(concat(a, b) * f, axis)        -> a*f[0] + b*f[1]
// Branches that a network stacks, weights and sums (selective kernels, split attention) are then pointwise over the values
// of the branches, which nothing copies.

#include <algorithm>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t max_parts = 4;

Dims without(Dims dims, std::size_t axis) {
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return dims;
}

/// True for a reshape that makes dims[axis] and the dim behind it of one dim.
bool splits_axis(const Graph& graph, const Node& reshape, const Dims& dims, std::size_t axis) {
  if (axis + 1 >= dims.size()) return false;
  Dims merged = without(dims, axis);
  merged[axis] *= dims[axis];
  return graph.type(reshape.inputs[0]).dims() == merged;
}

bool stacks_along(const Graph& graph, const Node& concat, std::size_t axis) {
  return concat.attributes.integer("axis") == static_cast<std::int64_t>(axis) &&
         std::all_of(concat.inputs.begin(), concat.inputs.end(),
                     [&](ValueId part) { return graph.type(part).dims()[axis] == 1; });
}

/// True when the parts along the axis lie apart, so that taking one of them copies nothing.
bool is_of_parts(const Graph& graph, ValueId id, std::size_t axis) {
  const Dims dims = graph.type(id).dims();
  if (const Node* concat = producer_if(graph, id, Op::concat)) return stacks_along(graph, *concat, axis);
  if (const Node* reshape = producer_if(graph, id, Op::reshape))
    return splits_axis(graph, *reshape, dims, axis);
  return false;
}

/// One place along the axis, the axis itself dropped; an extent of 1 is every place.
ValueId sliced_part(Graph& graph, ValueId id, std::size_t axis, std::int64_t place) {
  const Dims dims = graph.type(id).dims(), left = without(dims, axis);
  if (dims[axis] == 1) return add_reshape(graph, id, left);
  const Node* concat = producer_if(graph, id, Op::concat);
  if (concat != nullptr && stacks_along(graph, *concat, axis))
    return add_reshape(graph, concat->inputs[static_cast<std::size_t>(place)], left);
  const Node* reshape = producer_if(graph, id, Op::reshape);
  if (reshape != nullptr && splits_axis(graph, *reshape, dims, axis))
    return add_slice_along(graph, reshape->inputs[0], axis, place * left[axis], left[axis]);
  return add_reshape(graph, add_slice_along(graph, id, axis, place, 1), left);
}

/// What is summed at each place: a value, or the product of two of equal rank.
std::vector<ValueId> summands(const Graph& graph, ValueId id, std::size_t axis) {
  if (is_of_parts(graph, id, axis)) return {id};
  const Node* product = producer_if(graph, id, Op::mul);
  if (product == nullptr) return {};
  for (const ValueId factor : product->inputs)
    if (graph.type(factor).dims().size() != graph.type(id).dims().size()) return {};
  const bool any = std::any_of(product->inputs.begin(), product->inputs.end(),
                               [&](ValueId factor) { return is_of_parts(graph, factor, axis); });
  return any ? product->inputs : std::vector<ValueId>{};
}

bool split_sum(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::reduce_sum) return false;
  Graph& graph = rewriter.graph();
  const ValueId x = rewriter.mapped(node.inputs[0]);
  const std::vector<std::int64_t>& axes = node.attributes.integers("axes");
  if (axes.size() != 1 || graph.type(x).element_count() == 0) return false;
  const auto axis = static_cast<std::size_t>(axes[0]);
  const std::int64_t parts = graph.type(x).dims()[axis];
  if (parts < 2 || parts > max_parts) return false;
  const std::vector<ValueId> factors = summands(graph, x, axis);
  if (factors.empty()) return false;
  std::optional<ValueId> sum;
  for (std::int64_t place = 0; place < parts; ++place) {
    ValueId part = sliced_part(graph, factors[0], axis, place);
    if (factors.size() == 2) part = graph.add(Op::mul, {part, sliced_part(graph, factors[1], axis, place)});
    sum = sum ? graph.add(Op::add, {*sum, part}) : part;
  }
  rewriter.set(node.outputs[0], add_reshape(graph, *sum, rewriter.source().type(node.outputs[0]).dims()));
  return true;
}

}  // namespace

Graph split_sums(const Graph& graph) {
  return rewrite_nodes(graph,
                       [](GraphRewriter& rewriter, const Node& node) { return split_sum(rewriter, node); });
}

}  // namespace sylvite
