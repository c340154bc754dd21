// Which nodes name the bytes of others.

#include <algorithm>

#include "lowering/passes/images.h"
#include "lowering/plan/fusion.h"

namespace sylvite {
namespace {

/// One pixel an image: its channels lie the same dense and in whole blocks.
bool is_same_in_memory(const TensorType& from, const TensorType& to) {
  const Dims dims = from.dims();
  const auto is_whole = [&](const Layout& layout) {
    return layout.channel_block == 0 || dims.at(1) % layout.channel_block == 0;
  };
  return is_whole(from.layout) && is_whole(to.layout) &&
         std::all_of(dims.begin() + 2, dims.end(), [](std::int64_t extent) { return extent == 1; });
}

/// Dense dims [image, pixels..., channel], and images with their channels innermost.
bool is_turned_in_place(const Graph& graph, const Node& node) {
  const TensorType &from = graph.type(node.inputs[0]), &to = graph.type(node.outputs[0]);
  if (from.layout == to.layout || graph.is_constant(node.inputs[0])) return false;
  const bool leaves = to.layout.channel_block == 0;
  const TensorType& image = leaves ? from : to;
  const std::size_t rank = image.shape.size();
  return is_image(image) &&
         node.attributes.integers("perm") == (leaves ? channels_behind(rank) : channels_ahead(rank)) &&
         image.layout.channel_block == image.dims().at(1);
}

}  // namespace

bool is_free(const Graph& graph, const Node& node) {
  if (node.op == Op::to_layout)
    return graph.is_constant(node.inputs[0]) ||
           is_same_in_memory(graph.type(node.inputs[0]), graph.type(node.outputs[0]));
  if (node.op == Op::transpose) return is_turned_in_place(graph, node);
  return node.op == Op::reshape && graph.type(node.inputs[0]).layout.channel_block == 0;
}

}  // namespace sylvite
