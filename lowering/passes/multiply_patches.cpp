#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Kernels of convolutions take such images as they are; patches would have to be gathered first.
bool is_taken(const Graph& graph, const Node& node, const LoweringOptions& options) {
  constexpr std::int64_t whole_vectors = 8, widest_step = 8;
  const TensorType &x = graph.type(node.inputs[0]), &y = graph.type(node.outputs[0]);
  const bool lie_innermost = options.image_layout == ImageLayout::channels_last &&
                             may_lie_innermost(x, options.tf32) && may_lie_innermost(y, options.tf32);
  return lie_innermost && x.dims()[1] % whole_vectors == 0 && y.dims()[1] % whole_vectors == 0 &&
         std::ranges::max(node.attributes.integers("strides")) <= widest_step;
}

bool has_patches(const Graph& graph, const Node& node) {
  if (node.op != Op::conv || graph.type(node.inputs[0]).rank() != 4) return false;
  const Dims x = graph.type(node.inputs[0]).dims(), w = graph.type(node.inputs[1]).dims();
  const Dims window = {w[2], w[3]};
  const bool side_by_side =
      node.attributes.integers("strides") == window && node.attributes.integers("pads") == Dims{0, 0, 0, 0} &&
      node.attributes.integers("dilations") == Dims{1, 1} && node.attributes.integer("groups") == 1;
  return side_by_side && w[2] * w[3] > 1 && x[2] % w[2] == 0 && x[3] % w[3] == 0 &&
         graph.type(node.outputs[0]).element_count() > 0 && w[1] > 0;
}

void multiply(GraphRewriter& rewriter, const Node& node) {
  Graph& graph = rewriter.graph();
  const std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
  const Dims x = graph.type(inputs[0]).dims(), w = graph.type(inputs[1]).dims();
  const std::int64_t height = x[2] / w[2], width = x[3] / w[3], depth = w[1] * w[2] * w[3];
  const ValueId cut = add_reshape(graph, inputs[0], {x[0], x[1], height, w[2], width, w[3]});
  const ValueId gathered = add_transpose(graph, cut, {0, 2, 4, 1, 3, 5});
  const ValueId patches = add_reshape(graph, gathered, {x[0] * height * width, depth});
  const ValueId weight = add_transpose(graph, add_reshape(graph, inputs[1], {w[0], depth}), {1, 0});
  ValueId result = graph.add(Op::matmul, {patches, weight}, {}, node.name);
  if (inputs.size() > 2 && inputs[2] != no_value) result = graph.add(Op::add, {result, inputs[2]});
  const ValueId pixels = add_reshape(graph, result, {x[0], height, width, w[0]});
  rewriter.set(node.outputs[0], add_transpose(graph, pixels, channels_ahead()));
}

}  // namespace

Graph multiply_patches(const Graph& graph, const LoweringOptions& options) {
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (!has_patches(graph, node) || is_taken(graph, node, options)) return false;
    multiply(rewriter, node);
    return true;
  });
}

}  // namespace sylvite
