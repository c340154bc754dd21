// Before: y = softmax(x) along another dim than the innermost
// After:  y = transpose(softmax(transpose(x))) along the innermost dim; the transposes move nothing where x lies so
// Kernels take rows. The channels of an image that lies with its channels innermost are rows already.

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// The order of dims that moves a dim behind all others, and the one that moves it back.
struct Orders {
  Dims there, back;
};

Orders moves_behind(std::int64_t axis, std::int64_t rank) {
  Orders orders;
  for (std::int64_t d = 0; d < rank; ++d)
    if (d != axis) orders.there.push_back(d);
  orders.there.push_back(axis);
  for (std::int64_t d = 0; d < rank; ++d) orders.back.push_back(d < axis ? d : d == axis ? rank - 1 : d - 1);
  return orders;
}

}  // namespace

Graph turn_norms(const Graph& graph) {
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::softmax && node.op != Op::log_softmax) return false;
    const TensorType& type = graph.type(node.inputs[0]);
    const std::int64_t last = type.rank() - 1, axis = node.attributes.integer("axis");
    if (axis == last) return false;
    const auto [there, back] = moves_behind(axis, type.rank());
    const ValueId rows = add_transpose(rewriter.graph(), rewriter.mapped(node.inputs[0]), there);
    Attributes attributes = node.attributes;
    attributes.set("axis", last);
    const ValueId made = rewriter.graph().add(node.op, {rows}, attributes, node.name);
    rewriter.set(node.outputs[0], add_transpose(rewriter.graph(), made, back));
    return true;
  });
}

}  // namespace sylvite
