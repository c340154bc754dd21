// Before: y = softmax(x) along another dim than the innermost
// After:  y = transpose(softmax(transpose(x))) along the innermost dim; the transposes move nothing where x lies so
// Kernels take rows. The channels of an image that lies with its channels innermost are rows already. Few elements of many columns
// that lie beside each other stay: a thread for each column reads whole lines.

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/images.h"
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

/// Does a thread for each column keep a GPU busy?
bool has_short_columns(const Dims& dims, std::int64_t axis) {
  constexpr std::int64_t most_elements = 64, beside = 32, many = 1 << 14;
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t inner = product(dims, at + 1, dims.size());
  return dims[at] <= most_elements && inner >= beside && product(dims, 0, at) * inner >= many;
}

}  // namespace

Graph turn_norms(const Graph& graph, bool tf32) {
  const IdMap<bool> images = innermost_images(graph, tf32);
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::softmax && node.op != Op::log_softmax) return false;
    const TensorType& type = graph.type(node.inputs[0]);
    const std::int64_t last = type.rank() - 1, axis = node.attributes.integer("axis");
    const bool is_of_pixels = axis == 1 && images[node.inputs[0]];
    if (axis == last || (!is_of_pixels && has_short_columns(type.dims(), axis))) return false;
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
