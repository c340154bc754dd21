#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/images.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

bool is_taken(const Graph& graph, const Node& node, bool tf32) {
  if (node.op != Op::conv) return false;
  const TensorType& x = graph.type(node.inputs[0]);
  if (x.rank() != 4) return false;
  return is_for_tensor_cores(x.dtype, tf32) && x.dims()[1] < elements_of_vector(x.dtype) &&
         x.element_count() > 0 && node.attributes.integer("groups") == 1 &&
         node.attributes.integers("dilations") == Dims{1, 1};
}

bool widen(GraphRewriter& rewriter, const Node& node, bool tf32) {
  Graph& graph = rewriter.graph();
  if (!is_taken(rewriter.source(), node, tf32)) return false;
  const std::int64_t run = elements_of_vector(rewriter.source().type(node.inputs[0]).dtype);
  const Dims x = rewriter.source().type(node.inputs[0]).dims();
  const Dims out = rewriter.source().type(node.outputs[0]).dims();
  const std::optional<Tensor>& filter = rewriter.source().value(node.inputs[1]).constant;
  const Dims &strides = node.attributes.integers("strides"), &pads = node.attributes.integers("pads");
  Dims wide = rewriter.source().type(node.inputs[1]).dims();
  // Neighbouring windows, too, are a multiple of 16 bytes apart.
  wide[1] = x[1] <= run / 2 && strides[1] % 2 == 0 ? run / 2 : run;
  while (wide[1] * wide[3] % run != 0) ++wide[3];
  const auto behind = [&](std::size_t d) {
    const std::int64_t reach = (out[d] - 1) * strides[d - 2] + wide[d];
    return std::max<std::int64_t>(reach - pads[d - 2] - x[d], 0);
  };
  const ValueId padded = graph.add(
      Op::pad, {rewriter.mapped(node.inputs[0])},
      {{"low", Dims{0, 0, pads[0], pads[1]}}, {"high", Dims{0, wide[1] - x[1], behind(2), behind(3)}}});
  std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
  inputs[0] = padded;
  inputs[1] = filter ? graph.add_constant(with_zeros_behind(*filter, wide))
                     : add_zeros_behind(graph, inputs[1], wide);
  Attributes attributes = node.attributes;
  attributes.set("pads", Dims{0, 0, 0, 0});
  // What is left behind the last window may be less than a step, or more.
  const std::int64_t lines = x[2] + pads[0] + behind(2), columns = x[3] + pads[1] + behind(3);
  if ((lines - wide[2]) / strides[0] + 1 != out[2] || (columns - wide[3]) / strides[1] + 1 != out[3])
    return false;
  rewriter.replace(node, Op::conv, std::move(inputs), std::move(attributes));
  return true;
}

}  // namespace

Graph widen_few_channels(const Graph& graph, bool tf32) {
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return widen(rewriter, node, tf32); });
}

}  // namespace sylvite
