// Layer normalisation (Ba et al., arXiv 1607.06450) spelled out:
//   d = x - mean(x),  y = d / sqrt(mean(d^2) + epsilon)   or   d * rsqrt(...)
// and then, on a layer_norm without scale or bias, y * scale and y + bias with constants over the normalised
// dims.

#include <algorithm>

#include "frontend/graph/pattern_mean.h"
#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

struct Normalized {
  ValueId x;
  std::int64_t axis;
  double epsilon;
};

/// d = x - mean(x) over the trailing axes.
std::optional<Normalized> match_deviation(const Graph& graph, ValueId d) {
  const Node* sub = producer_if(graph, d, Op::sub);
  if (sub == nullptr) return std::nullopt;
  const std::optional<Mean> mean = match_mean(graph, sub->inputs[1]);
  if (!mean || mean->of != sub->inputs[0]) return std::nullopt;
  return Normalized{sub->inputs[0], mean->first_axis, 0.0};
}

std::optional<Normalized> match_normalized(const Graph& graph, const Node& root) {
  const std::optional<RootOfMeanSquare> quotient = match_divided_by_root_mean_square(graph, root);
  if (!quotient) return std::nullopt;
  std::optional<Normalized> result = match_deviation(graph, quotient->dividend);
  if (!result || quotient->squared != quotient->dividend || quotient->first_axis != result->axis)
    return std::nullopt;
  result->epsilon = quotient->epsilon;
  return result;
}

/// True when `id` is a constant whose shape is exactly the normalised dims of `type`, unit dims in front
/// aside.
bool spans_normalized_dims(const Graph& graph, ValueId id, const TensorType& type, std::int64_t axis) {
  if (!graph.is_constant(id)) return false;
  Dims tail = type.dims();
  tail.erase(tail.begin(), tail.begin() + axis);
  Dims dims = graph.value(id).constant->dims();
  while (dims.size() > tail.size() && dims.front() == 1) dims.erase(dims.begin());
  return dims == tail;
}

/// Folds `layer_norm(x) * scale` and `layer_norm(x[, scale]) + bias` into the node. Returns false when not
/// that.
bool absorb_affine(GraphRewriter& rewriter, const Node& node, const Node& copied) {
  for (int side : {0, 1}) {
    Graph& graph = rewriter.graph();
    const ValueId constant = copied.inputs[1 - side];
    const Node* norm = producer_if(graph, copied.inputs[side], Op::layer_norm);
    if (norm == nullptr) continue;
    const Attributes attributes = norm->attributes;
    const std::int64_t axis = attributes.integer("axis");
    std::vector<ValueId> inputs = norm->inputs;
    inputs.resize(3, no_value);
    const bool is_scale = node.op == Op::mul;
    if (inputs[2] != no_value || (is_scale && inputs[1] != no_value)) continue;
    const TensorType type = graph.type(inputs[0]);
    if (!spans_normalized_dims(graph, constant, type, axis)) continue;
    Dims tail = type.dims();
    tail.erase(tail.begin(), tail.begin() + axis);
    inputs[is_scale ? 1 : 2] = graph.add_constant(graph.value(constant).constant->reshaped(tail));
    rewriter.replace(node, Op::layer_norm, inputs, attributes);
    return true;
  }
  return false;
}

}  // namespace

Graph fuse_layer_norm(const Graph& graph) {
  return rewrite_nodes(graph, [](GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::mul && node.op != Op::div && node.op != Op::add) return false;
    rewriter.copy(node);
    const Node copied = rewriter.graph().nodes().back();
    if (node.op != Op::div && absorb_affine(rewriter, node, copied)) return true;
    if (node.op == Op::add) return true;
    if (const auto match = match_normalized(rewriter.graph(), copied)) {
      rewriter.replace(node, Op::layer_norm, {match->x},
                       {{"axis", match->axis}, {"epsilon", match->epsilon}});
    }
    return true;
  });
}

}  // namespace sylvite
