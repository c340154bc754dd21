// One step of the optimisers of ai.onnx.preview.training: plain arithmetic on weights, gradients and states.

#include <functional>

#include "base/error.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

/// The values of one weight before a step (weight, gradient, states) and after it (weight, states).
using Values = std::vector<Sym>;

/// Inputs are rate, count, then all weights, all gradients, all first states...; outputs all weights, all
/// states....
void for_each_weight(ImportContext& c, int states, const std::function<Values(const Values&)>& step) {
  const int per_weight = 2 + states;
  const int count = (c.input_count() - 2) / per_weight;
  if (count < 1 || 2 + count * per_weight != c.input_count())
    throw ModelError("{} inputs do not divide into weights", c.input_count());
  for (int i = 0; i < count; ++i) {
    Values before;
    for (int k = 0; k < per_weight; ++k) before.push_back(c.input(2 + k * count + i));
    const Values after = step(before);
    for (int k = 0; k < static_cast<int>(after.size()); ++k)
      c.output(k * count + i, after[static_cast<std::size_t>(k)]);
  }
}

void adagrad(ImportContext& c) {
  const Sym rate = c.input(0);
  const Sym count = cast(c.input(1), rate.dtype());
  const Sym decayed = rate / (1.0 + count * c.real("decay_factor", 0));
  for_each_weight(c, 1, [&](const Values& v) -> Values {
    const Sym gradient = v[0] * c.real("norm_coefficient", 0) + v[1];
    const Sym squares = v[2] + gradient * gradient;
    const Sym size = apply(Op::sqrt, squares) + c.real("epsilon", 0);
    return {v[0] - decayed * gradient / size, squares};
  });
}

/// The rate is corrected for the bias of young averages, from the first step on.
void adam(ImportContext& c) {
  const double alpha = c.real("alpha", 0.9);
  const double beta = c.real("beta", 0.999);
  const Sym rate = c.input(0);
  const Sym count = cast(c.input(1), rate.dtype());
  const auto remainder = [&](double base) {
    return 1.0 - apply(Op::pow, c.builder().scalar(rate.dtype(), base), count);
  };
  const Sym is_first = apply(Op::less_equal, count, 0.0);
  const Sym safe = where(is_first, 1.0, remainder(alpha));
  const Sym adjusted = where(is_first, rate, rate * apply(Op::sqrt, remainder(beta)) / safe);
  for_each_weight(c, 2, [&](const Values& v) -> Values {
    const Sym gradient = v[0] * c.real("norm_coefficient", 0) + v[1];
    const Sym momentum = v[2] * alpha + gradient * (1 - alpha);
    const Sym squares = v[3] * beta + gradient * gradient * (1 - beta);
    const Sym size = apply(Op::sqrt, squares) + c.real("epsilon", 0);
    const Sym next = v[0] - adjusted * (momentum / size);
    return {next * (1 - c.real("norm_coefficient_post", 0)), momentum, squares};
  });
}

void momentum(ImportContext& c) {
  const double alpha = c.real("alpha", 0.9);
  const Sym rate = c.input(0);
  const bool is_nesterov = c.string("mode", "standard") == "nesterov";
  const Sym is_first = apply(Op::less_equal, c.input(1), 0.0);
  GraphBuilder& b = c.builder();
  const Sym beta = where(is_first, b.scalar(rate.dtype(), 1), b.scalar(rate.dtype(), c.real("beta", 1)));
  for_each_weight(c, 1, [&](const Values& v) -> Values {
    const Sym gradient = v[0] * c.real("norm_coefficient", 0) + v[1];
    const Sym velocity = v[2] * alpha + beta * gradient;
    const Sym direction = is_nesterov ? gradient + velocity * alpha : velocity;
    return {v[0] - rate * direction, velocity};
  });
}

const OnnxOp training_rows[] = {
    {"Adagrad", 1, adagrad, "ai.onnx.preview.training"},
    {"Adam", 1, adam, "ai.onnx.preview.training"},
    {"Momentum", 1, momentum, "ai.onnx.preview.training"},
};

}  // namespace

std::span<const OnnxOp> onnx_training_ops() {
  return training_rows;
}

}  // namespace sylvite
