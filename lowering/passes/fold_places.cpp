// Before: i = arg_max(x, axis)
// After:  m = reduce_max(x, axis); i = -reduce_max(where(x == m or x is no number, -iota, -inf), axis)
// A pair of a value and its place is folded by one thread, but numbers by many: for a GPU, where folds are few and long. Places are
// whole numbers in f32. What is no number is greatest, as for the operation.

#include <cmath>
#include <limits>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Is it a row, of a thread for each of which there would be few, and may it be folded in f32?
bool is_long_fold(const Graph& graph, const Node& node) {
  constexpr std::int64_t least_length = 64, most_exact = 1 << 24, most_folds = 1 << 15;
  const TensorType& type = graph.type(node.inputs[0]);
  const Dims dims = type.dims();
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const std::int64_t length = dims.at(axis);
  if (product(dims, axis + 1, dims.size()) != 1) return false;
  const bool fits_f32 = is_float(type.dtype) && dtype_size(type.dtype) <= dtype_size(DType::f32);
  return fits_f32 && type.layout == Layout{} && length >= least_length && length <= most_exact &&
         type.element_count() / length <= most_folds;
}

bool fold_place(GraphRewriter& rewriter, const Node& node) {
  const bool largest = node.op == Op::arg_max;
  if (!(largest || node.op == Op::arg_min) || !is_long_fold(rewriter.source(), node)) return false;
  GraphBuilder builder(rewriter.graph());
  const std::int64_t axis = node.attributes.integer("axis");
  const Sym given = cast(Sym(builder, rewriter.mapped(node.inputs[0])), DType::f32);
  const Sym x = largest ? given : -given;
  const Dims dims = x.dims();
  const Sym most = reduce(Op::reduce_max, x, {axis});
  const Attributes counted = {{"shape", Dims{dims[static_cast<std::size_t>(axis)]}},
                              {"axis", std::int64_t{0}},
                              {"dtype", std::string(dtype_name(DType::f32))}};
  const Sym count(builder,
                  rewriter.graph().add(Op::iota, {}, counted));  // no constant: its extent may be open
  Dims along(dims.size(), 1);
  along[static_cast<std::size_t>(axis)] = dims[static_cast<std::size_t>(axis)];
  const bool takes_last = node.attributes.integer("select_last") != 0;
  const Sym rank = broadcast_to(reshape(takes_last ? count : -count, along), dims);
  const Sym is_most = apply(Op::logical_or, apply(Op::equal, x, broadcast_to(most, dims)),
                            apply(Op::logical_not, apply(Op::equal, x, x)));
  const Sym best =
      reduce(Op::reduce_max, where(is_most, rank, -std::numeric_limits<double>::infinity()), {axis});
  const TensorType& result = rewriter.source().type(node.outputs[0]);
  rewriter.set(node.outputs[0], reshape(cast(takes_last ? best : -best, result.dtype), result.dims()).id());
  return true;
}

}  // namespace

Graph fold_places(const Graph& graph) {
  return rewrite_nodes(graph, fold_place);
}

}  // namespace sylvite
