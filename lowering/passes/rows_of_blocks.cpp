// Before: y [N, H*W, C] = transpose(reshape(to_layout(x [N, C, H, W] in blocks), [N, C, H*W]))
// After:  y = reshape(transpose(to_layout(x), [0, 2, 3, 1]), [N, H*W, C])
// The reshape is free behind a kernel, but stands between two that are one without it.

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// The transpose of `from` that has the order of transpose(reshape(from, to), perm); nullopt where the reshape does more
/// than merge neighbours.
std::optional<Dims> order_of(const Dims& from, const Dims& to, const Dims& perm) {
  std::vector<Dims> merged(to.size());
  for (const DimGroup& group : dim_groups(from, to)) {
    if (group.to_end != group.to_begin + 1) return std::nullopt;
    for (std::size_t d = group.from_begin; d < group.from_end; ++d)
      merged[group.to_begin].push_back(static_cast<std::int64_t>(d));
  }
  Dims order;
  for (const std::int64_t d : perm) {
    const Dims& dims = merged[static_cast<std::size_t>(d)];
    order.insert(order.end(), dims.begin(), dims.end());
  }
  return order;
}

bool move(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::transpose) return false;
  Graph& graph = rewriter.graph();
  const Node* reshape = producer_if(graph, rewriter.mapped(node.inputs[0]), Op::reshape);
  const Node* layout = reshape == nullptr ? nullptr : producer_if(graph, reshape->inputs[0], Op::to_layout);
  if (layout == nullptr || graph.type(layout->inputs[0]).layout.channel_block == 0) return false;
  const ValueId planes = layout->outputs[0];
  if (graph.type(planes).element_count() == 0) return false;
  const std::optional<Dims> order = order_of(
      graph.type(planes).dims(), graph.type(reshape->outputs[0]).dims(), node.attributes.integers("perm"));
  if (!order || order->size() != graph.type(planes).dims().size() || order->back() != 1) return false;
  const ValueId rows = graph.add(Op::transpose, {planes}, {{"perm", *order}});
  rewriter.replace(node, Op::reshape, {rows}, {{"shape", rewriter.source().type(node.outputs[0]).dims()}});
  return true;
}

}  // namespace

Graph rows_of_blocks(const Graph& graph) {
  return rewrite_nodes(graph, move);
}

}  // namespace sylvite
