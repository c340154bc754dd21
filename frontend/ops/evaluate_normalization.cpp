// Reference semantics of normalisations.

#include <algorithm>
#include <cmath>

#include "frontend/ops/evaluate.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

/// The optional input i repeated to dims, or `fallback` everywhere.
std::vector<double> parameter(InputTensors inputs, std::size_t i, const Dims& dims, double fallback) {
  const Tensor* given = optional_input(inputs, i);
  if (given != nullptr) return decode<double>(expand(*given, dims));
  return std::vector<double>(static_cast<std::size_t>(checked_product(dims, "parameter")), fallback);
}

/// Normalises one group in place: (x - mean)/sqrt(variance + epsilon), the mean being 0 for rms_norm.
void normalise(double* values, std::int64_t count, bool centre, double epsilon) {
  double mean = 0;
  for (std::int64_t i = 0; centre && i < count; ++i) mean += values[i];
  mean /= static_cast<double>(count);
  double variance = 0;
  for (std::int64_t i = 0; i < count; ++i) variance += (values[i] - mean) * (values[i] - mean);
  const double scale = 1 / std::sqrt(variance / static_cast<double>(count) + epsilon);
  for (std::int64_t i = 0; i < count; ++i) values[i] = (values[i] - mean) * scale;
}

}  // namespace

OutputTensors evaluate_softmax(Op op, InputTensors inputs, const Attributes& attributes, ResultTypes) {
  const Tensor& input = *inputs[0];
  const AxisView view = view_axis(input.dims(), attributes.integer("axis"));
  std::vector<double> values = decode<double>(input);
  for (std::int64_t lane = 0; view.extent > 0 && lane < view.outer * view.inner; ++lane) {
    double* column = values.data() + lane / view.inner * view.extent * view.inner + lane % view.inner;
    double peak = column[0];
    for (std::int64_t i = 1; i < view.extent; ++i) peak = std::max(peak, column[i * view.inner]);
    double sum = 0;
    for (std::int64_t i = 0; i < view.extent; ++i) sum += std::exp(column[i * view.inner] - peak);
    const double log_sum = std::log(sum);
    for (std::int64_t i = 0; i < view.extent; ++i) {
      double& value = column[i * view.inner];
      value = op == Op::softmax ? std::exp(value - peak) / sum : value - peak - log_sum;
    }
  }
  return {encode(input.dtype(), input.dims(), values)};
}

OutputTensors evaluate_axis_norm(Op op, InputTensors inputs, const Attributes& attributes, ResultTypes) {
  const Tensor& input = *inputs[0];
  const Dims group_dims(input.dims().begin() + attributes.integer("axis"), input.dims().end());
  const std::int64_t parts = attributes.has("groups") ? attributes.integer("groups") : 1;
  const std::int64_t group = checked_product(group_dims, "normalised dims") / parts;
  const std::vector<double> scale = parameter(inputs, 1, group_dims, 1);
  const std::vector<double> bias = parameter(inputs, 2, group_dims, 0);
  std::vector<double> values = decode<double>(input);
  for (std::int64_t start = 0; start < input.size(); start += group) {
    double* row = values.data() + start;
    normalise(row, group, op == Op::layer_norm, attributes.real("epsilon"));
    for (std::int64_t i = 0; i < group; ++i) {
      const std::size_t at = static_cast<std::size_t>(start + i) % scale.size();
      row[i] = row[i] * scale[at] + bias[at];
    }
  }
  return {encode(input.dtype(), input.dims(), values)};
}

OutputTensors evaluate_batch_norm(Op, InputTensors inputs, const Attributes& attributes, ResultTypes) {
  const Tensor& input = *inputs[0];
  const AxisView view = view_axis(input.dims(), 1);
  const std::vector<double> scale = decode<double>(*inputs[1]);
  const std::vector<double> bias = decode<double>(*inputs[2]);
  const std::vector<double> mean = decode<double>(*inputs[3]);
  const std::vector<double> variance = decode<double>(*inputs[4]);
  std::vector<double> values = decode<double>(input);
  for (std::int64_t row = 0; row < view.outer * view.extent; ++row) {
    const auto channel = static_cast<std::size_t>(row % view.extent);
    const double factor = scale[channel] / std::sqrt(variance[channel] + attributes.real("epsilon"));
    double* row_values = values.data() + row * view.inner;
    for (std::int64_t i = 0; i < view.inner; ++i)
      row_values[i] = (row_values[i] - mean[channel]) * factor + bias[channel];
  }
  return {encode(input.dtype(), input.dims(), values)};
}

}  // namespace sylvite
