// Before: y = matmul(a, b)   of a [batch, heads, m, k] and b [batch, 1, k, n], which all heads share
// After:  y = reshape(matmul(reshape(a), reshape(b)))   a [batch, heads * m, k], b [batch, k, n]

#include "lowering/passes/join_batches.h"

#include <algorithm>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/alone.h"

namespace sylvite {
namespace {

/// Dims of the operands in which shared batches are rows.
struct Joined {
  Dims a, b;
};

std::optional<Joined> joined(const Graph& graph, const Node& node) {
  if (node.op != Op::matmul) return std::nullopt;
  const TensorType &left = graph.type(node.inputs[0]), &right = graph.type(node.inputs[1]);
  if (!left.is_known() || !right.is_known() || left.rank() != right.rank() || left.rank() < 4 ||
      left.element_count() == 0 || right.element_count() == 0)
    return std::nullopt;
  const Dims a = left.dims(), b = right.dims();
  const std::size_t end = a.size() - 2;
  std::size_t first = end;  // of the batches that share b
  while (first > 0 && b[first - 1] == 1) --first;
  if (first == 0 || product(a, first, end) == 1 ||
      !std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(first), b.begin()))
    return std::nullopt;
  Joined result{Dims(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(first)), {}};
  result.b = result.a;
  result.a.push_back(product(a, first, a.size() - 1));
  result.a.push_back(a.back());
  result.b.insert(result.b.end(), b.end() - 2, b.end());
  return result;
}

bool has_batch_template(const Graph& graph, const Node& node, const Joined& dims,
                        const LoweringOptions& options) {
  Graph body;
  const ValueId a = body.add_input("a", make_type(graph.type(node.inputs[0]).dtype, dims.a));
  const ValueId b = body.add_input("b", make_type(graph.type(node.inputs[1]).dtype, dims.b));
  body.outputs = {body.add(Op::matmul, {a, b})};
  return options.refuse_template(make_kernel(body, {false, false})).empty();
}

}  // namespace

Graph join_batches(const Graph& graph, const LoweringOptions& options) {
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    const std::optional<Joined> dims = joined(graph, node);
    if (!dims || options.refuse_template(kernel_alone(graph, node)).empty() ||
        !has_batch_template(graph, node, *dims, options))
      return false;
    Graph& after = rewriter.graph();
    const ValueId a = add_reshape(after, rewriter.mapped(node.inputs[0]), dims->a);
    const ValueId b = add_reshape(after, rewriter.mapped(node.inputs[1]), dims->b);
    const ValueId rows = after.add(Op::matmul, {a, b}, node.attributes, node.name);
    rewriter.set(node.outputs[0], add_reshape(after, rows, graph.type(node.outputs[0]).dims()));
    return true;
  });
}

}  // namespace sylvite
