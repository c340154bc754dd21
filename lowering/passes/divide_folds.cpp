// Before: y = reduce_max(x)                                 of x [texts, words, width], all of it
// After:  y = reduce_max(reduce_max(x, [words, width]), [texts])
// Parts are along dims that are there, so that nothing moves and sizes may differ, or else equal parts of the row; see row_parts.h.

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"
#include "lowering/passes/row_parts.h"

namespace sylvite {
namespace {

constexpr std::int64_t least_block = 128;  // elements that threads of a block fold sooner than one

/// What folds all but the leading dims; those of one element are as if folded behind the last of these.
struct Rows {
  std::size_t kept = 0;  ///< dims that stay
  std::int64_t rows = 1, length = 1;
};

std::optional<Rows> folded_rows(const Graph& graph, const Node& node) {
  constexpr std::array folds = {Op::reduce_sum, Op::reduce_max, Op::reduce_min, Op::reduce_prod};
  if (std::ranges::find(folds, node.op) == folds.end()) return std::nullopt;
  const TensorType& type = graph.type(node.inputs[0]);
  const Dims dims = type.dims(), axes = node.attributes.integers("axes");
  Rows found;
  const auto is_folded = [&](std::size_t d) {
    return dims[d] == 1 || std::ranges::find(axes, static_cast<std::int64_t>(d)) != axes.end();
  };
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (!is_folded(d)) found.kept = d + 1;
  for (std::size_t d = 0; d < found.kept; ++d)
    if (dims[d] != 1 && is_folded(d)) return std::nullopt;
  found.rows = product(dims, 0, found.kept);
  found.length = product(dims, found.kept, dims.size());
  return type.layout == Layout{} ? std::optional(found) : std::nullopt;
}

/// With the folded dims, from the left, that make no more parts than serve.
Rows parts_along_dims(const Dims& dims, Rows rows) {
  while (rows.kept + 1 < dims.size() && rows.rows * dims[rows.kept] <= most_row_parts) {
    rows.rows *= dims[rows.kept];
    rows.length /= dims[rows.kept++];
  }
  return rows;
}

Dims range(std::size_t first, std::size_t end) {
  Dims axes;
  for (std::size_t d = first; d < end; ++d) axes.push_back(static_cast<std::int64_t>(d));
  return axes;
}

/// The fold, its dims kept where no other is: what folds whole numbers has a loop for a row.
ValueId add_fold(Graph& graph, const Node& node, ValueId id, const Dims& axes) {
  const TensorType& type = graph.type(id);
  const std::int64_t keeps = axes.size() == type.dims().size() && !is_float(type.dtype) ? 1 : 0;
  return graph.add(node.op, {id}, {{"axes", axes}, {"keepdims", keeps}}, node.name);
}

bool replace_fold(GraphRewriter& rewriter, const Node& node, ValueId folded) {
  const TensorType& result = rewriter.source().type(node.outputs[0]);
  if (rewriter.graph().type(folded).dims() != result.dims())
    folded = add_reshape(rewriter.graph(), folded, result.dims());
  rewriter.set(node.outputs[0], add_cast(rewriter.graph(), folded, result.dtype));
  return true;
}

/// The truth values that are counted, or of which one is searched, where numbers in f32 count them; no_value otherwise.
ValueId counted_truth(const Graph& graph, const Node& node, ValueId id, const Rows& rows) {
  constexpr std::int64_t most_exact = 1 << 24;
  const Node* cast = producer_if(graph, id, Op::cast);
  if (cast == nullptr || graph.type(cast->inputs[0]).dtype != DType::boolean) return no_value;
  const bool is_exact = node.op != Op::reduce_sum || rows.length <= most_exact;
  return is_exact ? cast->inputs[0] : no_value;
}

/// The fold of each of the equal parts of rows, and that of what is behind them.
ValueId fold_parts(Graph& graph, const Node& node, ValueId id, const Rows& rows, const RowParts& parts) {
  GraphBuilder builder(graph);
  Dims whole = graph.type(id).dims();
  whole.resize(rows.kept);
  Dims divided = whole;
  whole.push_back(rows.length);
  divided.insert(divided.end(), {parts.count, parts.length});
  const Sym x = reshape(Sym(builder, id), whole);
  const auto axis = static_cast<int>(rows.kept);
  const std::int64_t end = parts.count * parts.length;
  const Sym equal = reshape(parts.rest == 0 ? x : slice(x, axis, 0, end), divided);
  const Sym folded = reduce(node.op, equal, {axis + 1}, false);
  if (parts.rest == 0) return folded.id();
  return concat({folded, reduce(node.op, slice(x, axis, end, rows.length), {axis}, true)}, axis).id();
}

bool divide_fold(GraphRewriter& rewriter, const Node& node, const Rows& rows) {
  Graph& graph = rewriter.graph();
  const TensorType type = rewriter.source().type(node.inputs[0]);
  ValueId x = rewriter.mapped(node.inputs[0]);
  const bool is_narrow = is_float(type.dtype) && dtype_size(type.dtype) < dtype_size(DType::f32);
  if (const ValueId truth = counted_truth(graph, node, x, rows); truth != no_value)
    x = add_cast(graph, truth, DType::f32);
  else if (is_narrow)
    x = add_cast(graph, x, DType::f32);  // what is folded of parts is not rounded
  constexpr std::int64_t long_part = 1
                                     << 17;  // which a cluster walks in the time of another launch, at least
  const Rows parts = parts_along_dims(type.dims(), rows);
  const bool are_long = are_few_and_long(parts.rows, parts.length);
  const bool are_enough =
      parts.rows >= rows.rows * least_row_parts && !(are_long && parts.length > long_part);
  const Rows& divided = are_long ? parts : rows;
  const ValueId folded =
      are_enough ? add_fold(graph, node, x, range(parts.kept, graph.type(x).dims().size()))
                 : fold_parts(graph, node, x, divided, parts_of_rows(divided.rows, divided.length));
  return replace_fold(rewriter, node,
                      add_fold(graph, node, folded, range(rows.kept, graph.type(folded).dims().size())));
}

bool fold_by_many(GraphRewriter& rewriter, const Node& node) {
  const std::optional<Rows> rows = folded_rows(rewriter.source(), node);
  if (!rows) return false;
  if (are_few_and_long(rows->rows, rows->length)) return divide_fold(rewriter, node, *rows);
  const TensorType& result = rewriter.source().type(node.outputs[0]);
  if (result.rank() != 0 || is_float(result.dtype) || rows->length < least_block) return false;
  const ValueId x = rewriter.mapped(node.inputs[0]);
  return replace_fold(rewriter, node,
                      add_fold(rewriter.graph(), node, x, range(0, rewriter.graph().type(x).dims().size())));
}

}  // namespace

Graph divide_folds(const Graph& graph) {
  return rewrite_nodes(graph, fold_by_many);
}

}  // namespace sylvite
