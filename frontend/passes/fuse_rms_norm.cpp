// Root mean square normalisation (Zhang and Sennrich, arXiv 1910.07467): x / sqrt(mean(x^2) + epsilon), then
// a constant scale over the normalised dims.

#include "frontend/graph/pattern_mean.h"
#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

bool absorb_scale(GraphRewriter& rewriter, const Node& node, const Node& copied) {
  for (std::size_t side : {0U, 1U}) {
    Graph& graph = rewriter.graph();
    const Node* norm = producer_if(graph, copied.inputs[side], Op::rms_norm);
    const ValueId scale = copied.inputs[1 - side];
    if (norm == nullptr || (norm->inputs.size() > 1 && norm->inputs[1] != no_value) ||
        !graph.is_constant(scale))
      continue;
    const ValueId x = norm->inputs[0];
    const Attributes attributes = norm->attributes;
    Dims tail = graph.type(x).dims();
    tail.erase(tail.begin(), tail.begin() + attributes.integer("axis"));
    if (graph.value(scale).constant->dims() != tail) continue;
    rewriter.replace(node, Op::rms_norm, {x, scale}, attributes);
    return true;
  }
  return false;
}

}  // namespace

Graph fuse_rms_norm(const Graph& graph) {
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::mul && node.op != Op::div) return false;
    rewriter.copy(node);
    const Node copied = rewriter.graph().nodes().back();
    if (node.op == Op::mul && absorb_scale(rewriter, node, copied)) return true;
    const auto match = match_divided_by_root_mean_square(rewriter.graph(), copied);
    if (match && match->squared == match->dividend) {
      rewriter.replace(node, Op::rms_norm, {match->dividend},
                       {{"axis", match->first_axis}, {"epsilon", match->epsilon}});
    }
    return true;
  });
}

}  // namespace sylvite
