#include "frontend/graph/pattern_mean.h"

#include <cmath>

#include "frontend/graph/rewrite.h"

namespace sylvite {
namespace {

/// The value under the root in 1/sqrt(v), rsqrt(v) or reciprocal(sqrt(v)); for a division, pass the divisor's
/// root.
std::optional<ValueId> inverse_root_argument(const Graph& graph, ValueId id) {
  if (const Node* node = producer_if(graph, id, Op::rsqrt)) return node->inputs[0];
  const Node* inverse = producer_if(graph, id, Op::reciprocal);
  const Node* root = inverse == nullptr ? nullptr : producer_if(graph, inverse->inputs[0], Op::sqrt);
  return root == nullptr ? std::nullopt : std::optional(root->inputs[0]);
}

}  // namespace

std::optional<ValueId> square_argument(const Graph& graph, ValueId id) {
  const Node* mul = producer_if(graph, id, Op::mul);
  if (mul != nullptr && mul->inputs[0] == mul->inputs[1]) return mul->inputs[0];
  const Node* power = producer_if(graph, id, Op::pow);
  if (power != nullptr && is_scalar(graph, power->inputs[1], 2.0)) return power->inputs[0];
  return std::nullopt;
}

std::optional<Mean> match_mean(const Graph& graph, ValueId id) {
  const Scaled mean = scaled(graph, id);
  const Node* sum = producer_if(graph, mean.base, Op::reduce_sum);
  if (sum == nullptr || sum->attributes.integer("keepdims") != 1) return std::nullopt;
  const Dims dims = graph.type(sum->inputs[0]).dims();
  const auto& axes = sum->attributes.integers("axes");
  double count = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<std::int64_t>(dims.size() - axes.size() + i)) return std::nullopt;
    count *= static_cast<double>(dims[static_cast<std::size_t>(axes[i])]);
  }
  if (axes.empty() || std::abs(mean.factor * count - 1.0) > 1e-5) return std::nullopt;
  return Mean{sum->inputs[0], axes[0]};
}

std::optional<RootOfMeanSquare> match_divided_by_root_mean_square(const Graph& graph, const Node& root) {
  std::optional<ValueId> under_root;
  ValueId dividend = no_value;
  if (root.op == Op::div) {
    if (const Node* node = producer_if(graph, root.inputs[1], Op::sqrt)) under_root = node->inputs[0];
    dividend = root.inputs[0];
  } else if (root.op == Op::mul) {
    for (std::size_t side : {0U, 1U}) {
      if (under_root) break;
      under_root = inverse_root_argument(graph, root.inputs[side]);
      dividend = root.inputs[1 - side];
    }
  }
  if (!under_root) return std::nullopt;
  const Node* sum = producer_if(graph, *under_root, Op::add);
  if (sum == nullptr) return std::nullopt;
  for (std::size_t side : {0U, 1U}) {
    const std::optional<double> epsilon = scalar_constant(graph, sum->inputs[side]);
    const std::optional<Mean> mean = match_mean(graph, sum->inputs[1 - side]);
    if (!epsilon || !mean) continue;
    const std::optional<ValueId> squared = square_argument(graph, mean->of);
    if (squared) return RootOfMeanSquare{dividend, *squared, mean->first_axis, *epsilon};
  }
  return std::nullopt;
}

}  // namespace sylvite
