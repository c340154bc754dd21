// Before: y = reduce_max(x)                                 of x [texts, words, width], all of it
// After:  y = reduce_max(reduce_max(x, [words, width]), [texts])
// A block of threads folds a row. A few rows that are long leave most of a GPU idle: parts of them are folded first. These are
// along dims that are there, so that nothing moves and sizes may differ, or else equal parts of the row.

#include <algorithm>
#include <array>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t least_row = 1 << 16, least_parts = 16, most_rows = 1 << 12;
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

bool are_long(const Rows& rows) {
  return rows.length >= least_row && rows.rows >= 1 && rows.rows * least_parts <= most_rows / 2;
}

/// How many of the folded dims, from the left, are parts where these are enough, but not too many.
std::size_t dims_of_parts(const Dims& dims, const Rows& rows, std::int64_t enough) {
  std::int64_t parts = 1;
  std::size_t end = rows.kept;
  while (end + 1 < dims.size() && rows.rows * parts * dims[end] <= most_rows) parts *= dims[end++];
  return parts >= enough ? end - rows.kept : 0;
}

/// Equal parts of a row; 1 where it has none.
std::int64_t equal_parts(const Rows& rows) {
  for (std::int64_t parts = 512; parts >= least_parts; parts /= 2)
    if (rows.length % parts == 0 && rows.rows * parts <= most_rows) return parts;
  return 1;
}

Dims range(std::size_t first, std::size_t end) {
  Dims axes;
  for (std::size_t d = first; d < end; ++d) axes.push_back(static_cast<std::int64_t>(d));
  return axes;
}

/// The fold, its dims kept where no other is: a kernel of a row has a loop for it.
ValueId add_fold(Graph& graph, const Node& node, ValueId id, const Dims& axes) {
  const std::int64_t keeps = axes.size() == graph.type(id).dims().size() ? 1 : 0;
  return graph.add(node.op, {id}, {{"axes", axes}, {"keepdims", keeps}}, node.name);
}

bool replace_fold(GraphRewriter& rewriter, const Node& node, ValueId folded) {
  const TensorType& result = rewriter.source().type(node.outputs[0]);
  if (rewriter.graph().type(folded).dims() != result.dims())
    folded = add_reshape(rewriter.graph(), folded, result.dims());
  rewriter.set(node.outputs[0], add_cast(rewriter.graph(), folded, result.dtype));
  return true;
}

bool divide_fold(GraphRewriter& rewriter, const Node& node, const Rows& rows) {
  Graph& graph = rewriter.graph();
  const TensorType type = rewriter.source().type(node.inputs[0]);
  ValueId x = rewriter.mapped(node.inputs[0]);
  const std::int64_t count = equal_parts(rows), fills_a_gpu = 256;
  std::size_t parts = dims_of_parts(type.dims(), rows, std::min(fills_a_gpu, std::max(count, least_parts)));
  if (parts == 0) {
    if (count == 1) return false;
    Dims shape = type.dims();
    shape.resize(rows.kept);
    shape.insert(shape.end(), {count, rows.length / count});
    x = add_reshape(graph, x, shape);
    parts = 1;
  }
  const bool is_narrow = is_float(type.dtype) && dtype_size(type.dtype) < dtype_size(DType::f32);
  if (is_narrow) x = add_cast(graph, x, DType::f32);  // what is folded of parts is not rounded
  const std::size_t rank = graph.type(x).dims().size(), first = rows.kept + parts;
  const ValueId folded = add_fold(graph, node, x, range(first, rank));
  return replace_fold(rewriter, node, add_fold(graph, node, folded, range(rows.kept, first)));
}

bool fold_by_many(GraphRewriter& rewriter, const Node& node) {
  const std::optional<Rows> rows = folded_rows(rewriter.source(), node);
  if (!rows) return false;
  if (are_long(*rows) && divide_fold(rewriter, node, *rows)) return true;
  const bool is_scalar = rewriter.source().type(node.outputs[0]).rank() == 0;
  if (!is_scalar || rows->length < least_block) return false;
  const ValueId x = rewriter.mapped(node.inputs[0]);
  return replace_fold(rewriter, node,
                      add_fold(rewriter.graph(), node, x, range(0, rewriter.graph().type(x).dims().size())));
}

}  // namespace

Graph divide_folds(const Graph& graph) {
  return rewrite_nodes(graph, fold_by_many);
}

}  // namespace sylvite
