// Before: y = matmul(a, b)   of a [batches..., m, 2] and b [batches..., 2, n], both small
// After:  y = add(mul(a[..., :, 0:1], b[..., 0:1, :]), mul(a[..., :, 1:2], b[..., 1:2, :]))

#include "lowering/passes/expand_products.h"

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_depth = 16;  // terms of the sum
constexpr std::int64_t narrow = 4;       // rows or columns, of the 8 or 16 of a tile of tensor cores
constexpr std::int64_t most_expanded_elements = 1024;
constexpr std::int64_t few_multiplied =
    32;  // by numbers of the wide operand: terms by narrow rows or columns
constexpr std::int64_t least_batches = 64;

bool is_expanded(const Graph& graph, const Node& node) {
  if (node.op != Op::matmul) return false;
  const TensorType &a = graph.type(node.inputs[0]), &b = graph.type(node.inputs[1]);
  if (!a.is_known() || !b.is_known() || a.rank() < 3 || a.rank() != b.rank() || !is_float(a.dtype))
    return false;
  if (graph.is_constant(node.inputs[0]) || graph.is_constant(node.inputs[1])) return false;
  const Dims left = a.dims(), out = graph.type(node.outputs[0]).dims();
  const std::int64_t depth = left.back(), rows = out[out.size() - 2], columns = out.back();
  const std::int64_t batches = product(out, 0, out.size() - 2);
  const std::int64_t least = std::min(rows, columns);
  const bool is_small = least <= narrow && rows * columns <= most_expanded_elements;
  return depth >= 1 && depth <= most_depth && (is_small || depth * least <= few_multiplied) &&
         rows * columns >= 1 && batches >= least_batches;
}

void expand(GraphRewriter& rewriter, const Node& node) {
  Graph& graph = rewriter.graph();
  const ValueId a = rewriter.mapped(node.inputs[0]), b = rewriter.mapped(node.inputs[1]);
  const std::size_t rank = graph.type(a).dims().size();
  ValueId sum = no_value;
  for (std::int64_t i = 0, depth = graph.type(a).dims().back(); i < depth; ++i) {
    const ValueId term = graph.add(
        Op::mul, {add_slice_along(graph, a, rank - 1, i, 1), add_slice_along(graph, b, rank - 2, i, 1)});
    sum = sum == no_value ? term : graph.add(Op::add, {sum, term});
  }
  rewriter.set(node.outputs[0], sum);
}

}  // namespace

Graph expand_products(const Graph& graph) {
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    if (!is_expanded(rewriter.source(), node)) return false;
    expand(rewriter, node);
    return true;
  });
}

}  // namespace sylvite
