// Before: y = transpose(reshape(cast(x)))     x of 16 bits, y of f32
// After:  y = cast(transpose(reshape(x)))
// What is moved is half as large, and a GPU's template for transposes converts on the way: the cast is no kernel of its own where
// the kernel ahead does not store what is wider.

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/fusion_rules.h"

namespace sylvite {

Graph widen_turned(const Graph& graph) {
  const IdMap<std::vector<NodeId>> uses = graph.uses();
  const auto is_own = [&](ValueId id) {
    return uses[id].size() == 1 && std::ranges::find(graph.outputs, id) == graph.outputs.end();
  };
  const auto is_view = [](const Node& node) { return node.op == Op::reshape || node.op == Op::transpose; };
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    const ValueId result = node.outputs[0];
    const bool goes_on = is_own(result) && is_view(graph.node(uses[result][0]));
    if (!is_view(node) || goes_on) return false;
    std::vector<const Node*> views = {&node};
    ValueId start = node.inputs[0];
    while (is_own(start) && graph.value(start).producer != no_node &&
           is_view(graph.node(graph.value(start).producer))) {
      views.push_back(&graph.node(graph.value(start).producer));
      start = views.back()->inputs[0];
    }
    const NodeId producer = is_own(start) ? graph.value(start).producer : no_node;
    const bool turns = std::ranges::any_of(views, [](const Node* view) { return view->op == Op::transpose; });
    if (!turns || producer == no_node || !is_widening(graph, graph.node(producer))) return false;
    const Node& cast = graph.node(producer);
    ValueId made = rewriter.mapped(cast.inputs[0]);
    for (auto view = views.rbegin(); view != views.rend(); ++view)
      made = rewriter.graph().add((*view)->op, {made}, (*view)->attributes, (*view)->name);
    rewriter.set(result, rewriter.graph().add(Op::cast, {made}, cast.attributes, cast.name));
    return true;
  });
}

}  // namespace sylvite
