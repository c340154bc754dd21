// Before: y = transpose(reshape(conv(x), [images, channels, pixels]), [0,2,1])
// After:  y = reshape(transpose(conv(x), [0,2,3,1]), [images, pixels, channels])
// Of an image that a convolution makes with its channels innermost, the rows of pixels are there without a move.

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// The dims of `image`, but those of one, in the order in which they lie behind reshape and transpose; empty where the reshape
/// splits a dim or the transpose parts what it merges.
Dims order_behind(const Dims& image, const Dims& shape, const Dims& perm) {
  std::vector<Dims> merged(shape.size());
  for (const DimGroup& group : dim_groups(image, shape)) {
    std::size_t held = group.to_end;
    for (std::size_t d = group.to_begin; d < group.to_end; ++d) {
      if (shape[d] == 1) continue;
      if (held != group.to_end) return {};
      held = d;
    }
    for (std::size_t d = group.from_begin; d < group.from_end; ++d)
      if (image[d] != 1) merged.at(held).push_back(static_cast<std::int64_t>(d));
  }
  Dims order;
  for (const std::int64_t axis : perm) {
    const Dims& dims = merged[static_cast<std::size_t>(axis)];
    order.insert(order.end(), dims.begin(), dims.end());
  }
  return order;
}

Dims without_units(const Dims& perm, const Dims& image) {
  Dims result;
  std::ranges::copy_if(perm, std::back_inserter(result),
                       [&](std::int64_t axis) { return image[static_cast<std::size_t>(axis)] != 1; });
  return result;
}

}  // namespace

Graph turn_images(const Graph& graph, bool tf32) {
  const IdMap<bool> images = innermost_images(graph, tf32);
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::transpose) return false;
    const Node* reshape = producer_if(graph, node.inputs[0], Op::reshape);
    if (reshape == nullptr || !images[reshape->inputs[0]]) return false;
    const Dims image = graph.type(reshape->inputs[0]).dims(), out = graph.type(node.outputs[0]).dims();
    const Dims order =
        order_behind(image, graph.type(node.inputs[0]).dims(), node.attributes.integers("perm"));
    if (order != without_units(channels_behind, image)) return false;
    const ValueId turned = rewriter.graph().add(Op::transpose, {rewriter.mapped(reshape->inputs[0])},
                                                {{"perm", channels_behind}}, node.name);
    rewriter.set(node.outputs[0], rewriter.graph().add(Op::reshape, {turned}, {{"shape", out}}));
    return true;
  });
}

}  // namespace sylvite
