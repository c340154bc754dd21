// What is stacked ahead of all dims, to be moved inwards by what reads it, is put together there at once:
//   transpose(concat(x[1,a,b], y[1,a,b]), [1,0,2])  ->  concat(x[a,1,b], y[a,1,b])
//   reshape(concat(x[a,1,b], y[a,1,b]), [a,2b])     ->  concat(x[a,b], y[a,b])
//   reshape(concat(x[1,a,b], y[1,a,b]), [2,a,1,b])  ->  concat(x[1,a,1,b], y[1,a,1,b])
// The gradients of query, key and value become columns of one matrix, which nothing transposes.

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

/// The concat of slices of one place each that makes `id`, else nullptr.
const Node* stack_of(const Graph& graph, ValueId id) {
  const Node* concat = producer_if(graph, id, Op::concat);
  if (concat == nullptr) return nullptr;
  const auto axis = static_cast<std::size_t>(concat->attributes.integer("axis"));
  const bool are_slices = std::all_of(concat->inputs.begin(), concat->inputs.end(),
                                      [&](ValueId part) { return graph.type(part).dims()[axis] == 1; });
  return are_slices && graph.type(id).element_count() > 0 ? concat : nullptr;
}

/// Each part with `view` of it, along `axis`.
template <typename View>
void join_views(GraphRewriter& rewriter, const Node& node, const Node& stack, std::size_t axis,
                const View& view) {
  std::vector<ValueId> parts = stack.inputs;
  for (ValueId& part : parts) part = view(part);
  rewriter.replace(node, Op::concat, std::move(parts), {{"axis", static_cast<std::int64_t>(axis)}});
}

bool move_inwards(GraphRewriter& rewriter, const Node& node, const Node& stack) {
  if (stack.attributes.integer("axis") != 0) return false;
  const Dims perm = node.attributes.integers("perm");
  const auto axis = static_cast<std::size_t>(std::find(perm.begin(), perm.end(), 0) - perm.begin());
  join_views(rewriter, node, stack, axis,
             [&](ValueId part) { return add_transpose(rewriter.graph(), part, perm); });
  return true;
}

/// The reshape keeps the stack's places together in one dim, alone or with dims behind them.
bool reshape_parts(GraphRewriter& rewriter, const Node& node, const Node& stack) {
  const auto axis = static_cast<std::size_t>(stack.attributes.integer("axis"));
  const Dims from = rewriter.graph().type(stack.outputs[0]).dims();
  Dims part = rewriter.source().type(node.outputs[0]).dims();
  const std::int64_t places = from[axis], before = product(from, 0, axis);
  std::size_t now = 0;
  while (now < part.size() && (product(part, 0, now) != before || part[now] % places != 0)) ++now;
  if (now == part.size()) return false;
  part[now] /= places;
  join_views(rewriter, node, stack, now,
             [&](ValueId value) { return add_reshape(rewriter.graph(), value, part); });
  return true;
}

}  // namespace

Graph move_stacks(const Graph& graph) {
  const IdMap<std::vector<NodeId>> uses = graph.uses();
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::transpose && node.op != Op::reshape) return false;
    if (uses[node.inputs[0]].size() != 1 || std::ranges::count(graph.outputs, node.inputs[0]) > 0)
      return false;
    const Node* found = stack_of(rewriter.graph(), rewriter.mapped(node.inputs[0]));
    if (found == nullptr) return false;
    const Node stack = *found;  // the graph's nodes move as it grows
    if (node.op == Op::transpose) return move_inwards(rewriter, node, stack);
    return reshape_parts(rewriter, node, stack);
  });
}

}  // namespace sylvite
