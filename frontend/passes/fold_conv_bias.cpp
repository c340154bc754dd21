// conv(x, w) + b[1,O,1,1] with constant b, where nothing else reads the convolution: b becomes its bias.

#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

/// b as a vector over the channels when it varies along dim 1 of `out` only; nullopt otherwise.
std::optional<Tensor> per_channel(const Graph& graph, ValueId b, const TensorType& out) {
  if (!graph.is_constant(b) || graph.type(b).rank() > out.rank()) return std::nullopt;
  const Tensor& tensor = *graph.value(b).constant;
  const std::int64_t channels = out.dims()[1];
  const int channel_axis = graph.type(b).rank() - (out.rank() - 1);
  if (channel_axis < 0 || tensor.size() != channels ||
      tensor.dims()[static_cast<std::size_t>(channel_axis)] != channels) {
    return std::nullopt;
  }
  return tensor.reshaped({channels});
}

}  // namespace

Graph fold_conv_bias(const Graph& graph) {
  const IdMap<std::vector<NodeId>> uses = graph.uses();
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::add) return false;
    const ValueId old_inputs[2] = {node.inputs[0], node.inputs[1]};
    for (int side : {0, 1}) {
      if (uses[old_inputs[side]].size() != 1) continue;
      const ValueId x = rewriter.mapped(old_inputs[side]);
      const ValueId b = rewriter.mapped(old_inputs[1 - side]);
      const Node* conv = producer_if(rewriter.graph(), x, Op::conv);
      if (conv == nullptr || (conv->inputs.size() > 2 && conv->inputs[2] != no_value)) continue;
      const std::optional<Tensor> bias = per_channel(rewriter.graph(), b, rewriter.graph().type(x));
      if (!bias) continue;
      const std::vector<ValueId> inputs = {conv->inputs[0], conv->inputs[1]};
      const Attributes attributes = conv->attributes;
      const ValueId constant = rewriter.graph().add_constant(*bias);
      rewriter.replace(node, Op::conv, {inputs[0], inputs[1], constant}, attributes);
      return true;
    }
    return false;
  });
}

}  // namespace sylvite
