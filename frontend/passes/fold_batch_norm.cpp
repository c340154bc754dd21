// BatchNorm after a convolution that nothing else reads disappears into its weights; elsewhere it becomes a
// scale and a shift per channel. Both need constant statistics.
//   w'[o,...] = w[o,...] * s[o],  b'[o] = b[o] * s[o] + t[o],  s = scale / sqrt(variance + epsilon),  t =
//   bias - mean * s
// A convolution of bf16 or f16 may be made wide before: its weights are as narrow after, and so is what it gives, which is
// rounded once either way.

#include <fmt/format.h>

#include <cmath>

#include "frontend/graph/made_weights.h"
#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"
#include "frontend/values/half.h"

namespace sylvite {
namespace {

struct Affine {
  std::vector<double> scale;
  std::vector<double> shift;
};

std::optional<Affine> affine_of(const Graph& graph, const Node& node, const std::vector<ValueId>& inputs) {
  for (std::size_t i = 1; i < 5; ++i)
    if (!graph.is_constant(inputs[i])) return std::nullopt;
  const auto at = [&](std::size_t input, std::int64_t i) {
    return graph.value(inputs[input]).constant->as_double(i);
  };
  const double epsilon = node.attributes.real("epsilon");
  Affine result;
  for (std::int64_t c = 0; c < graph.value(inputs[1]).constant->size(); ++c) {
    result.scale.push_back(at(1, c) / std::sqrt(at(4, c) + epsilon));
    result.shift.push_back(at(2, c) - at(3, c) * result.scale.back());
    // An infinite mean or scale gives infinities or NaN, as the formula says; folded it could give the other.
    if (!std::isfinite(result.scale.back()) || !std::isfinite(result.shift.back())) return std::nullopt;
  }
  return result;
}

template <typename T>
Tensor scaled(const Tensor& weights, const std::vector<double>& scale) {
  Tensor result(weights.dtype(), weights.dims());
  const std::size_t per_channel = static_cast<std::size_t>(weights.size()) / scale.size();
  const auto from = weights.view<T>();
  const auto to = result.mutable_view<T>();
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i] = static_cast<T>(static_cast<double>(from[i]) * scale[i / per_channel]);
  return result;
}

Tensor scaled_weights(const Tensor& weights, const std::vector<double>& scale) {
  if (weights.dtype() == DType::bf16) return scaled<BFloat16>(weights, scale);
  return weights.dtype() == DType::f16 ? scaled<Half>(weights, scale) : scaled<float>(weights, scale);
}

/// The same, or what an earlier import made of these weights and this norm.
Tensor normed_weights(const Graph& graph, const Node& norm, const std::vector<ValueId>& norm_inputs,
                      const Tensor& weights, const std::vector<double>& scale) {
  std::vector<Tensor> sources = {weights};
  for (std::size_t i = 1; i < 5; ++i) sources.push_back(*graph.value(norm_inputs[i]).constant);
  return made_of(fmt::format("batch_norm {}", norm.attributes.real("epsilon")), sources,
                 [&] { return scaled_weights(weights, scale); });
}

/// The convolution that the value is made of, directly or through a cast that loses nothing.
const Node* conv_before(const Graph& graph, ValueId x) {
  const Node* cast = producer_if(graph, x, Op::cast);
  const ValueId source = cast == nullptr ? x : cast->inputs[0];
  const DType dtype = graph.type(source).dtype;
  const bool is_served = cast == nullptr ? dtype == DType::f32 : is_half(dtype);
  return is_served && graph.type(x).dtype == DType::f32 ? producer_if(graph, source, Op::conv) : nullptr;
}

/// Is the value read once, and what it is a cast of, too?
bool has_one_reader(const Graph& graph, const IdMap<std::vector<NodeId>>& uses, ValueId x) {
  const Node* cast = producer_if(graph, x, Op::cast);
  return uses[x].size() == 1 && (cast == nullptr || uses[cast->inputs[0]].size() == 1);
}

bool fold_into_conv(GraphRewriter& rewriter, const Node& node, const std::vector<ValueId>& norm_inputs,
                    const Affine& affine) {
  Graph& graph = rewriter.graph();
  const Node* conv = conv_before(graph, norm_inputs[0]);
  if (conv == nullptr || !graph.is_constant(conv->inputs[1])) return false;
  const ValueId old_bias = conv->inputs.size() > 2 ? conv->inputs[2] : no_value;
  if (old_bias != no_value && !graph.is_constant(old_bias)) return false;
  const Tensor weights = *graph.value(conv->inputs[1]).constant;
  const DType dtype = weights.dtype();
  Tensor bias(dtype, {static_cast<std::int64_t>(affine.scale.size())});
  for (std::size_t c = 0; c < affine.scale.size(); ++c) {
    const auto i = static_cast<std::int64_t>(c);
    const double before = old_bias == no_value ? 0.0 : graph.value(old_bias).constant->as_double(i);
    bias.set_double(i, before * affine.scale[c] + affine.shift[c]);
  }
  const ValueId input = conv->inputs[0];
  const Attributes attributes = conv->attributes;
  const std::string name = conv->name;
  const ValueId new_weights = graph.add_constant(
      normed_weights(graph, node, norm_inputs, weights, affine.scale), graph.value(conv->inputs[1]).name);
  const ValueId new_bias = graph.add_constant(std::move(bias));
  if (dtype == DType::f32) {
    rewriter.replace(node, Op::conv, {input, new_weights, new_bias}, attributes);
    return true;
  }
  const ValueId folded = graph.add(Op::conv, {input, new_weights, new_bias}, attributes, name);
  rewriter.replace(node, Op::cast, {folded}, {{"to", std::string("f32")}});
  return true;
}

ValueId channel_constant(Graph& graph, const TensorType& like, const std::vector<double>& values) {
  Dims dims(like.shape.size(), 1);
  dims[1] = static_cast<std::int64_t>(values.size());
  Tensor tensor(like.dtype, dims);
  for (std::size_t c = 0; c < values.size(); ++c) tensor.set_double(static_cast<std::int64_t>(c), values[c]);
  return graph.add_constant(std::move(tensor));
}

}  // namespace

Graph fold_batch_norm(const Graph& graph) {
  const IdMap<std::vector<NodeId>> uses = graph.uses();
  return rewrite_nodes(graph, [&](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::batch_norm) return false;
    const std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
    const std::optional<Affine> affine = affine_of(rewriter.graph(), node, inputs);
    if (!affine) return false;
    if (has_one_reader(graph, uses, node.inputs[0]) && fold_into_conv(rewriter, node, inputs, *affine))
      return true;
    Graph& now = rewriter.graph();
    const TensorType type = now.type(inputs[0]);
    const ValueId product =
        now.add(Op::mul, {inputs[0], channel_constant(now, type, affine->scale)}, {}, node.name);
    rewriter.replace(node, Op::add, {product, channel_constant(now, type, affine->shift)});
    return true;
  });
}

}  // namespace sylvite
