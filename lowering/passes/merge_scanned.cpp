// Before: y = cumsum(x), the first k, or softmax(x), along n of x [outer..., n, inner...]
// After:  y = the same of x [outer, n, inner]; where inner is short and not 1, of its transpose [outer * inner, n]. The first few of
// short rows are found across many rows at once, along n of [n, outer]. Softmax stays where its columns fill vectors.

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// How what is scanned lies for the kernel: [outer, n, inner] with its dims in another order, and then those beside n as one.
struct Scanned {
  std::int64_t outer = 1, n = 1, inner = 1;
  Dims perm;  ///< its own inverse; none: as it is
  std::int64_t axis = 1;

  /// With `count` elements along the axis.
  [[nodiscard]] Dims dims(std::int64_t count) const {
    if (axis == 0) return {count, outer * inner};
    if (!perm.empty()) return {outer * inner, count};
    return inner == 1 ? Dims{outer, count} : Dims{outer, count, inner};
  }
  [[nodiscard]] Dims apart(std::int64_t count) const { return {outer, count, inner}; }
  [[nodiscard]] Dims apart_in_order(std::int64_t count) const {
    return axis == 0 ? Dims{count, outer, inner} : Dims{outer, inner, count};
  }
};

/// A choice along columns takes a step for each element; in rows, elements are ranked by steps for each pair, or each choice folds
/// vectors. Tenths of nanoseconds of one row, as measured.
bool gains_across_rows(const Scanned& rows, std::int64_t k) {
  constexpr std::int64_t least_rows = 128, most_ranked = 32, of_step = 4;
  const std::int64_t in_row = rows.n <= most_ranked ? 400 + rows.n * rows.n * 10 / 16 : 100 + k * 320;
  return rows.inner == 1 && rows.outer >= least_rows && 5 * (k + 1) * rows.n * of_step < 4 * in_row;
}

constexpr std::int64_t least_columns = 8;  // shorter ones fill no vectors

Scanned scanned_of(const Dims& dims, std::size_t axis) {
  Scanned scanned{product(dims, 0, axis), dims[axis], product(dims, axis + 1, dims.size()), {}};
  if (scanned.inner > 1 && scanned.inner < least_columns)
    scanned.perm = {0, 2, 1};
  else if (scanned.outer == 1 && scanned.inner > 1)
    scanned.axis = 0;
  return scanned;
}

ValueId laid(Graph& graph, ValueId x, const Scanned& scanned) {
  if (!scanned.perm.empty())
    x = add_transpose(graph, add_reshape(graph, x, scanned.apart(scanned.n)), scanned.perm);
  return add_reshape(graph, x, scanned.dims(scanned.n));
}

ValueId put_back(Graph& graph, ValueId y, const Scanned& scanned, const Dims& dims, std::int64_t count) {
  if (!scanned.perm.empty())
    y = add_transpose(graph, add_reshape(graph, y, scanned.apart_in_order(count)), scanned.perm);
  return add_reshape(graph, y, dims);
}

bool merge_dims(GraphRewriter& rewriter, const Node& node) {
  const bool is_softmax = node.op == Op::softmax || node.op == Op::log_softmax;
  if (node.op != Op::cumsum && node.op != Op::top_k && !is_softmax) return false;
  const Graph& source = rewriter.source();
  const TensorType type = source.type(node.inputs[0]);
  const TensorType result = source.type(node.outputs[0]);
  if (!type.is_known() || !result.is_known() || result.element_count() == 0) return false;
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  Scanned scanned = scanned_of(type.dims(), axis);
  if (is_softmax && (axis + 1 == type.dims().size() || scanned.inner >= least_columns)) return false;
  const std::int64_t count = result.dims()[axis];
  const bool is_free = node.op == Op::top_k && node.attributes.integer("ties") == 0;
  if (is_free && gains_across_rows(scanned, count)) {
    scanned.perm = {1, 0, 2};
    scanned.axis = 0;
  }
  if (scanned.perm.empty() && scanned.dims(scanned.n) == type.dims()) return false;
  Graph& graph = rewriter.graph();
  Attributes attributes = node.attributes;
  attributes.set("axis", scanned.axis);
  const ValueId x = laid(graph, rewriter.mapped(node.inputs)[0], scanned);
  const std::vector<ValueId> results = graph.add_node(node.op, {x}, attributes, node.name);
  for (std::size_t i = 0; i < results.size(); ++i)
    rewriter.set(node.outputs[i], put_back(graph, results[i], scanned, result.dims(), count));
  return true;
}

}  // namespace

Graph merge_scanned(const Graph& graph) {
  return rewrite_nodes(graph, merge_dims);
}

}  // namespace sylvite
