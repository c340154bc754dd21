#include "frontend/ops/facts.h"

namespace sylvite {
namespace {

/// Of the extents from `first` on.
double product(const Dims& extents, std::size_t first) {
  double result = 1;
  for (std::size_t i = first; i < extents.size(); ++i) result *= static_cast<double>(extents[i]);
  return result;
}

}  // namespace

double matmul_terms(InputTypes inputs, const TensorType&, const Attributes&) {
  return static_cast<double>(inputs[0]->dims().back());
}

double conv_terms(InputTypes inputs, const TensorType&, const Attributes&) {
  return product(inputs[1]->dims(), 1);
}

double pool_terms(InputTypes, const TensorType&, const Attributes& attributes) {
  return product(attributes.integers("kernel"), 0);
}

double attention_terms(InputTypes inputs, const TensorType& result, const Attributes&) {
  const Dims k = inputs[1]->dims();
  const auto keys = static_cast<double>(k[k.size() - 2]);
  const auto columns = static_cast<double>(result.dims().back());
  return columns > 0 ? keys * (1 + static_cast<double>(k.back()) / columns) : keys;
}

}  // namespace sylvite
