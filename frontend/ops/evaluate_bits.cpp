// Reference semantics of products by weights of a few bits; blocks of rows are quantised as row_quantization.h says.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "frontend/ops/evaluate.h"
#include "frontend/values/row_quantization.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

/// What the steps of a block stand for, in its place.
void quantize_block(float* x, std::int64_t count) {
  float peak = 0;
  bool is_finite = true;
  for (std::int64_t i = 0; i < count; ++i) {
    is_finite = is_finite && std::isfinite(x[i]);
    peak = std::max(peak, std::abs(x[i]));
  }
  const float inverse = peak <= smallest_range ? 0 : block_levels / peak;
  const float scale = is_finite ? peak * (1.0F / block_levels) : std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t i = 0; i < count; ++i) x[i] = std::nearbyintf(x[i] * inverse) * scale;
}

/// b as [n, k], with its zeros taken off and scaled.
std::vector<float> widened(InputTensors inputs, const Attributes& attributes, std::int64_t depth) {
  const std::int64_t bits = attributes.integer("bits");
  const std::int64_t block = attributes.integer("block");
  const Dims& dims = inputs[1]->dims();
  const auto* bytes = static_cast<const std::uint8_t*>(inputs[1]->data());
  const std::vector<float> scales = decode<float>(*inputs[2]);
  const bool has_zeros = inputs.size() > 3 && inputs[3] != nullptr;
  const std::vector<float> zeros = has_zeros ? decode<float>(*inputs[3]) : std::vector<float>();
  const auto usual_zero = static_cast<float>(std::int64_t{1} << (bits - 1));
  const std::int64_t per_byte = 8 / bits;
  std::vector<float> result(static_cast<std::size_t>(dims[0] * depth));
  for (std::int64_t n = 0; n < dims[0]; ++n) {
    for (std::int64_t k = 0; k < depth; ++k) {
      const auto of = static_cast<std::size_t>(n * dims[1] + k / block);
      const std::uint8_t byte = bytes[(n * dims[1] + k / block) * dims[2] + k % block / per_byte];
      const int number = byte >> (bits * (k % per_byte)) & ((1 << bits) - 1);
      const float zero = has_zeros ? zeros[of] : usual_zero;
      result[static_cast<std::size_t>(n * depth + k)] = (static_cast<float>(number) - zero) * scales[of];
    }
  }
  return result;
}

}  // namespace

OutputTensors evaluate_matmul_bits(Op op, InputTensors inputs, const Attributes& attributes,
                                   ResultTypes types) {
  std::vector<float> a = decode<float>(*inputs[0]);
  const std::int64_t depth = inputs[0]->dims().back();
  const std::int64_t block = attributes.integer("block");
  const std::int64_t columns = inputs[1]->dims()[0];
  const std::vector<float> b = widened(inputs, attributes, depth);
  std::vector<double> out(static_cast<std::size_t>(types[0].element_count()));
  for (std::int64_t row = 0; row * columns < types[0].element_count(); ++row) {
    float* x = a.data() + row * depth;
    if (op == Op::quantized_matmul_bits)
      for (std::int64_t k = 0; k < depth; k += block) quantize_block(x + k, std::min(block, depth - k));
    for (std::int64_t n = 0; n < columns; ++n) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += static_cast<double>(x[k]) * b[static_cast<std::size_t>(n * depth + k)];
      out[static_cast<std::size_t>(row * columns + n)] = sum;
    }
  }
  return {encode(types[0].dtype, types[0].dims(), out)};
}

}  // namespace sylvite
