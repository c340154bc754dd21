#include "frontend/ops/facts.h"

#include <algorithm>

#include "base/rounding.h"

namespace sylvite {
namespace {

/// Of the extents from `first` on.
double extents_product(const Dims& extents, std::size_t first) {
  double result = 1;
  for (std::size_t i = first; i < extents.size(); ++i) result *= static_cast<double>(extents[i]);
  return result;
}

}  // namespace

double matmul_terms(InputTypes inputs, const TensorType&, const Attributes&) {
  return static_cast<double>(inputs[0]->dims().back());
}

double conv_terms(InputTypes inputs, const TensorType&, const Attributes&) {
  return extents_product(inputs[1]->dims(), 1);
}

double filter_gradient_terms(InputTypes inputs, const TensorType&, const Attributes& attributes) {
  const Dims gradient = inputs[0]->dims();
  return static_cast<double>(gradient[0]) * extents_product(gradient, 2) /
         static_cast<double>(attributes.integer("parts"));
}

std::int64_t filter_gradient_part(const Dims& gradient, std::int64_t parts) {
  constexpr std::int64_t at_a_time = 64;
  std::int64_t pixels = gradient[0];
  for (std::size_t d = 2; d < gradient.size(); ++d) pixels *= gradient[d];
  return std::max(at_a_time, round_up(ceil_div(pixels, parts), at_a_time));
}

double pool_terms(InputTypes, const TensorType&, const Attributes& attributes) {
  return extents_product(attributes.integers("kernel"), 0);
}

double attention_sums_terms(InputTypes inputs, const TensorType&, const Attributes&) {
  const Dims k = inputs[1]->dims();
  return static_cast<double>(k[k.size() - 2]) * static_cast<double>(k.back());
}

double attention_gradient_terms(InputTypes inputs, const TensorType&, const Attributes& attributes) {
  const Dims q = inputs[0]->dims(), k = inputs[1]->dims();
  const std::int64_t of = attributes.integer("of");
  return static_cast<double>(of == 0 ? k[k.size() - 2] : q[q.size() - 2]) * (of == 2 ? 2 : 3);
}

double attention_terms(InputTypes inputs, const TensorType& result, const Attributes&) {
  const Dims k = inputs[1]->dims();
  const auto keys = static_cast<double>(k[k.size() - 2]);
  const auto columns = static_cast<double>(result.dims().back());
  return columns > 0 ? keys * (1 + static_cast<double>(k.back()) / columns) : keys;
}

}  // namespace sylvite
