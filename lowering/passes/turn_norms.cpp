// Before: y = softmax(x) over the channels of an image x that lies with its channels innermost
// After:  y = transpose(softmax(transpose(x))) over the innermost dim; the transposes move nothing where the image lies so

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {

Graph turn_norms(const Graph& graph, bool tf32) {
  const IdMap<bool> images = innermost_images(graph, tf32);
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if ((node.op != Op::softmax && node.op != Op::log_softmax) || node.attributes.integer("axis") != 1)
      return false;
    if (!images[node.inputs[0]]) return false;
    const std::size_t rank = graph.type(node.inputs[0]).shape.size();
    const ValueId behind =
        add_transpose(rewriter.graph(), rewriter.mapped(node.inputs[0]), channels_behind(rank));
    Attributes attributes = node.attributes;
    attributes.set("axis", static_cast<std::int64_t>(rank) - 1);
    const ValueId made = rewriter.graph().add(node.op, {behind}, attributes, node.name);
    rewriter.set(node.outputs[0], add_transpose(rewriter.graph(), made, channels_ahead(rank)));
    return true;
  });
}

}  // namespace sylvite
