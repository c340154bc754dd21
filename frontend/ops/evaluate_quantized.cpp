// Reference semantics of quantized_matmul: quantisation in f32 as row_quantization.h says, sums exact.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "frontend/ops/evaluate.h"
#include "frontend/values/row_quantization.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

struct QuantizedRow {
  std::vector<std::uint8_t> steps;
  std::int32_t zero = 0;
  float scale = 0;
};

QuantizedRow quantize_row(const float* x, std::int64_t count) {
  QuantizedRow row;
  row.steps.resize(static_cast<std::size_t>(count));
  float high = 0;
  float low = 0;
  bool is_finite = true;
  for (std::int64_t i = 0; i < count; ++i) {
    high = std::max(high, x[i]);
    low = std::max(low, -x[i]);
    is_finite = is_finite && std::isfinite(x[i]);
  }
  const float range = high + low;
  if (!is_finite || !std::isfinite(range)) {
    row.scale = std::numeric_limits<float>::quiet_NaN();
    return row;
  }
  if (range <= smallest_range) return row;
  const float inverse = activation_levels / range;
  row.scale = range * (1.0F / activation_levels);
  row.zero = static_cast<std::int32_t>(std::nearbyintf(low * inverse));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t step = static_cast<std::int32_t>(std::nearbyintf(x[i] * inverse)) + row.zero;
    row.steps[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(std::min(step, 255));
  }
  return row;
}

}  // namespace

OutputTensors evaluate_quantized_matmul(Op, InputTensors inputs, const Attributes&, ResultTypes types) {
  const std::vector<float> a = decode<float>(*inputs[0]);
  const auto* b = static_cast<const std::int8_t*>(inputs[1]->data());
  const auto* scales = static_cast<const float*>(inputs[2]->data());
  const auto* column_sums = static_cast<const std::int32_t*>(inputs[3]->data());
  const std::int64_t depth = inputs[1]->dims()[0];
  const std::int64_t columns = inputs[1]->dims()[1];
  std::vector<float> out(static_cast<std::size_t>(types[0].element_count()));
  std::vector<std::int32_t> sums(static_cast<std::size_t>(columns));
  for (std::int64_t row = 0; row * columns < types[0].element_count(); ++row) {
    const QuantizedRow quantized = quantize_row(a.data() + row * depth, depth);
    std::fill(sums.begin(), sums.end(), 0);
    for (std::int64_t k = 0; k < depth; ++k) {
      const std::int32_t step = quantized.steps[static_cast<std::size_t>(k)];
      const std::int8_t* b_row = b + k * columns;
      for (std::int64_t j = 0; j < columns; ++j) sums[static_cast<std::size_t>(j)] += step * b_row[j];
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int32_t sum = sums[static_cast<std::size_t>(j)] - quantized.zero * column_sums[j];
      out[static_cast<std::size_t>(row * columns + j)] =
          static_cast<float>(sum) * quantized.scale * scales[j];
    }
  }
  return {encode(types[0].dtype, types[0].dims(), out)};
}

}  // namespace sylvite
