// Before: y = softmax(x)   along an innermost dim of two to four elements
// After:  y = exp(x - m) / (exp(a - m) + exp(b - m))   of a and b, the slices of x along that dim, and m = maximum(x, a, b)
// All of it has the shape of x, so that nothing stands between the work and what reads it.
//
// Before: y = reduce_sum(x)   along any dim of two to four elements; or the largest, the smallest, or the product of them
// After:  y = reshape(add(a, b))
// Where x is reshape(z), which cuts a dim in two, a and b are every second place of z.
//
// So few elements are no rows that threads could share: as pointwise work they lie as their neighbours want, and are made where
// they are read.

#include <cstdint>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/join_two.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_spread_elements = 4;
constexpr std::int64_t least_short_rows = 1 << 12;  // less is done sooner than a kernel starts

bool has_few_elements(const TensorType& type, std::int64_t axis) {
  if (!type.is_known() || !is_float(type.dtype) || type.dtype == DType::f64) return false;
  const std::int64_t extent = type.dims().at(static_cast<std::size_t>(axis));
  return extent >= 2 && extent <= most_spread_elements && type.element_count() / extent >= least_short_rows;
}

bool has_short_rows(const TensorType& type, std::int64_t axis) {
  return axis == type.rank() - 1 && has_few_elements(type, axis);
}

/// Where the dim is the inner part of one that a reshape cuts in two, what is reshaped: every n-th place along its uncut dim is such
/// a slice, and an image's channels stay where they lie. no_value where it is not.
ValueId uncut(const Graph& graph, ValueId given, std::size_t dim) {
  const Node* reshape = producer_if(graph, given, Op::reshape);
  if (reshape == nullptr || dim == 0) return no_value;
  Dims dims = graph.type(given).dims();
  dims[dim - 1] *= dims[dim];
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(dim));
  return graph.type(reshape->inputs[0]).dims() == dims ? reshape->inputs[0] : no_value;
}

/// Every `step`-th place of a dim.
ValueId add_every(Graph& graph, ValueId id, std::size_t dim, std::int64_t first, std::int64_t step) {
  Dims sizes = graph.type(id).dims(), starts(sizes.size(), 0), steps(sizes.size(), 1);
  sizes[dim] /= step;
  starts[dim] = first;
  steps[dim] = step;
  return add_slice(graph, id, starts, sizes, steps);
}

/// The slices along the dim, in f32.
std::vector<ValueId> elements_of(Graph& graph, ValueId given, std::int64_t axis) {
  const auto dim = static_cast<std::size_t>(axis);
  const std::int64_t extent = graph.type(given).dims()[dim];
  std::vector<ValueId> elements;
  elements.reserve(static_cast<std::size_t>(extent));
  for (std::int64_t i = 0; i < extent; ++i)
    elements.push_back(add_cast(graph, add_slice_along(graph, given, dim, i, 1), DType::f32));
  return elements;
}

bool spread_fold(GraphRewriter& rewriter, const Node& node) {
  const TensorType& type = rewriter.source().type(node.inputs[0]);
  const Dims& axes = node.attributes.integers("axes");
  if (axes.size() != 1 || !has_few_elements(type, axes[0])) return false;
  Graph& graph = rewriter.graph();
  const ValueId given = rewriter.mapped(node.inputs[0]);
  const auto dim = static_cast<std::size_t>(axes[0]);
  const ValueId whole = uncut(graph, given, dim);
  // The greatest and the least of numbers are some of these.
  const bool is_one = node.op == Op::reduce_max || node.op == Op::reduce_min;
  const std::int64_t extent = type.dims()[dim];
  ValueId all = no_value;
  for (std::int64_t i = 0; i < extent; ++i) {
    const ValueId slice = whole == no_value ? add_slice_along(graph, given, dim, i, 1)
                                            : add_every(graph, whole, dim - 1, i, extent);
    const ValueId element = add_cast(graph, slice, is_one ? type.dtype : DType::f32);
    all = all == no_value ? element : graph.add(*join_of(node.op), {all, element}, {}, node.name);
  }
  const Dims dims = rewriter.source().type(node.outputs[0]).dims();
  rewriter.set(node.outputs[0], add_reshape(graph, add_cast(graph, all, type.dtype), dims));
  return true;
}

bool spread_softmax(GraphRewriter& rewriter, const Node& node) {
  const TensorType& type = rewriter.source().type(node.inputs[0]);
  if (!has_short_rows(type, node.attributes.integer("axis"))) return false;
  Graph& graph = rewriter.graph();
  const ValueId given = rewriter.mapped(node.inputs[0]);
  const std::vector<ValueId> elements = elements_of(graph, given, type.rank() - 1);
  const ValueId whole = add_cast(graph, given, DType::f32);
  ValueId most = whole, sum = no_value;
  for (const ValueId element : elements) most = graph.add(Op::maximum, {most, element});
  for (const ValueId element : elements) {
    const ValueId term = graph.add(Op::exp, {graph.add(Op::sub, {element, most})});
    sum = sum == no_value ? term : graph.add(Op::add, {sum, term});
  }
  const ValueId apart = graph.add(Op::sub, {whole, most});
  const ValueId made = node.op == Op::softmax
                           ? graph.add(Op::div, {graph.add(Op::exp, {apart}), sum}, {}, node.name)
                           : graph.add(Op::sub, {apart, graph.add(Op::log, {sum})}, {}, node.name);
  rewriter.set(node.outputs[0], add_cast(graph, made, type.dtype));
  return true;
}

bool spread(GraphRewriter& rewriter, const Node& node) {
  if (node.op == Op::softmax || node.op == Op::log_softmax) return spread_softmax(rewriter, node);
  return join_of(node.op) && spread_fold(rewriter, node);
}

}  // namespace

Graph spread_short_rows(const Graph& graph) {
  return rewrite_nodes(graph, spread);
}

}  // namespace sylvite
