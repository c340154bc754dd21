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

/// A fold of all but the leading dims; those of one element are as if folded behind the last of these.
struct LongRows {
  std::size_t kept = 0;  ///< dims that stay
  std::int64_t rows = 1, length = 1;
};

std::optional<LongRows> long_rows(const Graph& graph, const Node& node) {
  constexpr std::array folds = {Op::reduce_sum, Op::reduce_max, Op::reduce_min, Op::reduce_prod};
  if (std::ranges::find(folds, node.op) == folds.end()) return std::nullopt;
  const TensorType& type = graph.type(node.inputs[0]);
  const Dims dims = type.dims(), axes = node.attributes.integers("axes");
  LongRows found;
  const auto is_folded = [&](std::size_t d) {
    return dims[d] == 1 || std::ranges::find(axes, static_cast<std::int64_t>(d)) != axes.end();
  };
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (!is_folded(d)) found.kept = d + 1;
  for (std::size_t d = 0; d < found.kept; ++d)
    if (dims[d] != 1 && is_folded(d)) return std::nullopt;
  found.rows = product(dims, 0, found.kept);
  found.length = product(dims, found.kept, dims.size());
  const bool pays = found.length >= least_row && found.rows >= 1 && found.rows * least_parts <= most_rows / 2;
  return pays && type.layout == Layout{} ? std::optional(found) : std::nullopt;
}

/// How many of the folded dims, from the left, are parts where these are enough, but not too many.
std::size_t dims_of_parts(const Dims& dims, const LongRows& rows, std::int64_t enough) {
  std::int64_t parts = 1;
  std::size_t end = rows.kept;
  while (end + 1 < dims.size() && rows.rows * parts * dims[end] <= most_rows) parts *= dims[end++];
  return parts >= enough ? end - rows.kept : 0;
}

/// Equal parts of a row; 1 where it has none.
std::int64_t equal_parts(const LongRows& rows) {
  for (std::int64_t parts = 512; parts >= least_parts; parts /= 2)
    if (rows.length % parts == 0 && rows.rows * parts <= most_rows) return parts;
  return 1;
}

Dims range(std::size_t first, std::size_t end) {
  Dims axes;
  for (std::size_t d = first; d < end; ++d) axes.push_back(static_cast<std::int64_t>(d));
  return axes;
}

bool divide_fold(GraphRewriter& rewriter, const Node& node) {
  const Graph& source = rewriter.source();
  const std::optional<LongRows> rows = long_rows(source, node);
  if (!rows) return false;
  Graph& graph = rewriter.graph();
  const TensorType& type = source.type(node.inputs[0]);
  const TensorType& result = source.type(node.outputs[0]);
  ValueId x = rewriter.mapped(node.inputs[0]);
  const std::int64_t count = equal_parts(*rows), fills_a_gpu = 256;
  std::size_t parts = dims_of_parts(type.dims(), *rows, std::min(fills_a_gpu, std::max(count, least_parts)));
  if (parts == 0) {
    if (count == 1) return false;
    Dims shape = type.dims();
    shape.resize(rows->kept);
    shape.insert(shape.end(), {count, rows->length / count});
    x = add_reshape(graph, x, shape);
    parts = 1;
  }
  const bool is_narrow = is_float(type.dtype) && dtype_size(type.dtype) < dtype_size(DType::f32);
  if (is_narrow) x = add_cast(graph, x, DType::f32);  // what is folded of parts is not rounded
  const std::size_t rank = graph.type(x).dims().size(), first = rows->kept + parts;
  const auto fold = [&](ValueId id, const Dims& axes) {
    return graph.add(node.op, {id}, {{"axes", axes}, {"keepdims", std::int64_t{0}}}, node.name);
  };
  ValueId all = fold(fold(x, range(first, rank)), range(rows->kept, first));
  if (graph.type(all).dims() != result.dims()) all = add_reshape(graph, all, result.dims());
  rewriter.set(node.outputs[0], add_cast(graph, all, result.dtype));
  return true;
}

}  // namespace

Graph divide_folds(const Graph& graph) {
  return rewrite_nodes(graph, divide_fold);
}

}  // namespace sylvite
