// Before: y [N, F, D', H', W] = conv(x [N, C, D, H, W], W [F, C, kz, ky, 1])   of few channels, windows of one column
// After:  y = the same of images [N*W, C, D, H]
// Templates read whole vectors of channels and of the columns beside each other, of which such windows have few and one.

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

bool is_taken_as_volume(const Graph& graph, const Node& node, bool tf32) {
  if (node.op != Op::conv) return false;
  const TensorType& x = graph.type(node.inputs[0]);
  if (x.rank() != 5 || x.element_count() == 0 || !is_for_tensor_cores(x.dtype, tf32)) return false;
  if (x.dims()[1] >= elements_of_vector(x.dtype)) return false;
  const Dims &strides = node.attributes.integers("strides"), &pads = node.attributes.integers("pads");
  return graph.type(node.inputs[1]).dims()[4] == 1 && strides[2] == 1 && pads[2] == 0 && pads[5] == 0;
}

bool part(GraphRewriter& rewriter, const Node& node, bool tf32) {
  if (!is_taken_as_volume(rewriter.source(), node, tf32)) return false;
  Graph& graph = rewriter.graph();
  const Dims x = rewriter.source().type(node.inputs[0]).dims();
  const Dims filter = rewriter.source().type(node.inputs[1]).dims();
  const Dims y = rewriter.source().type(node.outputs[0]).dims();
  std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
  inputs[0] =
      add_reshape(graph, add_transpose(graph, inputs[0], {0, 4, 1, 2, 3}), {x[0] * x[4], x[1], x[2], x[3]});
  const std::optional<Tensor>& constant = rewriter.source().value(node.inputs[1]).constant;
  const Dims plane = {filter[0], filter[1], filter[2], filter[3]};
  inputs[1] = constant ? graph.add_constant(constant->reshaped(plane)) : add_reshape(graph, inputs[1], plane);
  Attributes attributes = node.attributes;
  const Dims &strides = node.attributes.integers("strides"), &pads = node.attributes.integers("pads"),
             &dilations = node.attributes.integers("dilations");
  attributes.set("strides", Dims{strides[0], strides[1]});
  attributes.set("dilations", Dims{dilations[0], dilations[1]});
  attributes.set("pads", Dims{pads[0], pads[1], pads[3], pads[4]});
  const ValueId images = graph.add(Op::conv, inputs, attributes, node.name);
  const ValueId apart = add_reshape(graph, images, {y[0], y[4], y[1], y[2], y[3]});
  rewriter.set(node.outputs[0], add_transpose(graph, apart, {0, 2, 3, 4, 1}));
  return true;
}

}  // namespace

Graph part_volumes(const Graph& graph, bool tf32) {
  return rewrite_nodes(graph,
                       [&](GraphRewriter& rewriter, const Node& node) { return part(rewriter, node, tf32); });
}

}  // namespace sylvite
