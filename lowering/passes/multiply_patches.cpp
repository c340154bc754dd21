#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

bool is_all(const Dims& values, std::int64_t one) {
  return std::ranges::all_of(values, [&](std::int64_t value) { return value == one; });
}

/// Kernels of convolutions take such images as they are; patches would have to be gathered first.
bool is_taken_by_template(const Graph& graph, const Node& node, const LoweringOptions& options) {
  constexpr std::int64_t whole_vectors = 8, widest_step = 8;
  const TensorType &x = graph.type(node.inputs[0]), &y = graph.type(node.outputs[0]);
  const bool lie_innermost = options.image_layout == ImageLayout::channels_last &&
                             may_lie_innermost(x, options.tf32) && may_lie_innermost(y, options.tf32);
  return lie_innermost && x.dims()[1] % whole_vectors == 0 && y.dims()[1] % whole_vectors == 0 &&
         std::ranges::max(node.attributes.integers("strides")) <= widest_step;
}

bool has_patches(const Graph& graph, const Node& node) {
  if (node.op != Op::conv || !is_image(graph.type(node.inputs[0]))) return false;
  const Dims x = graph.type(node.inputs[0]).dims(), w = graph.type(node.inputs[1]).dims();
  const Dims window(w.begin() + 2, w.end());
  const Dims &pads = node.attributes.integers("pads"), &dilations = node.attributes.integers("dilations");
  const bool side_by_side = node.attributes.integers("strides") == window && is_all(pads, 0) &&
                            is_all(dilations, 1) && node.attributes.integer("groups") == 1;
  bool fills = true;
  for (std::size_t d = 2; d < x.size(); ++d) fills = fills && x[d] % w[d] == 0;
  return side_by_side && fills && product(w, 2, w.size()) > 1 &&
         graph.type(node.outputs[0]).element_count() > 0 && w[1] > 0;
}

void multiply_patch(GraphRewriter& rewriter, const Node& node) {
  Graph& graph = rewriter.graph();
  const std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
  const Dims x = graph.type(inputs[0]).dims(), w = graph.type(inputs[1]).dims();
  const std::int64_t depth = product(w, 1, w.size());
  // [image, channel, patches by places in a patch...] -> [image, patches..., channel, places...]
  Dims cut = {x[0], x[1]}, places = {1}, order = {0}, pixels = {x[0]};
  for (std::size_t d = 2; d < x.size(); ++d) {
    pixels.push_back(x[d] / w[d]);
    cut.insert(cut.end(), {x[d] / w[d], w[d]});
    order.push_back(static_cast<std::int64_t>(cut.size()) - 2);
    places.push_back(static_cast<std::int64_t>(cut.size()) - 1);
  }
  order.insert(order.end(), places.begin(), places.end());
  const ValueId gathered = add_transpose(graph, add_reshape(graph, inputs[0], cut), order);
  const ValueId patches = add_reshape(graph, gathered, {product(pixels, 0, pixels.size()), depth});
  const ValueId weight = add_transpose(graph, add_reshape(graph, inputs[1], {w[0], depth}), {1, 0});
  ValueId result = graph.add(Op::matmul, {patches, weight}, {}, node.name);
  if (inputs.size() > 2 && inputs[2] != no_value) result = graph.add(Op::add, {result, inputs[2]});
  pixels.push_back(w[0]);
  rewriter.set(node.outputs[0],
               add_transpose(graph, add_reshape(graph, result, pixels), channels_ahead(x.size())));
}

}  // namespace

Graph multiply_patches(const Graph& graph, const LoweringOptions& options) {
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (!has_patches(graph, node) || is_taken_by_template(graph, node, options)) return false;
    multiply_patch(rewriter, node);
    return true;
  });
}

}  // namespace sylvite
