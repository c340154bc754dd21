#include "autotune/verify.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>

#include "base/parts.h"
#include "lowering/plan/storage_order.h"

namespace sylvite {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The largest value(i) over all stored elements that are not padding, in parts beside each other: the heads
/// of language models have hundreds of millions.
template <typename Value>
double largest_of(const TensorType& type, Value value) {
  const Dims stored = type.storage_dims();
  const std::int64_t count = checked_product(stored, "output");
  const std::int64_t block = std::max<std::int64_t>(type.layout.channel_block, 1);
  const bool is_blocked = type.layout.channel_block > 0;
  const std::int64_t channels = is_blocked ? type.dims().at(1) : 0, blocks = is_blocked ? stored.at(1) : 1;
  const std::int64_t stride = is_blocked ? storage_strides(stored, has_outer_blocks(type)).at(1) : 1;
  std::mutex mutex;
  double largest = 0;
  for_parts(count, type.byte_size(), [&](std::int64_t begin, std::int64_t end) {
    double own = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      const bool is_padding = is_blocked && i / stride % blocks * block + i % block >= channels;
      if (!is_padding) own = std::max(own, value(i));
    }
    const std::scoped_lock lock(mutex);
    largest = std::max(largest, own);
  });
  return largest;
}

double element_error(double actual, double expected, double scale, const Tolerance& tolerance) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return 0;
  if (!std::isfinite(actual) || !std::isfinite(expected)) return infinity;
  return std::abs(actual - expected) / tolerance.allowed(expected, scale);
}

/// How far apart neighbouring values of a narrow type are, relative to them, at most: results that differ by
/// rounding in f32 may round to neighbours.
double neighbours_apart(DType dtype) {
  if (dtype == DType::bf16) return 0x1p-7;
  return dtype == DType::f16 ? 0x1p-10 : 0;
}

/// `actual(i)` and `expected(i)` give elements as doubles.
template <typename Actual, typename Expected>
double float_error(const TensorType& type, Actual actual, Expected expected, const Tolerance& tolerance) {
  const double scale = largest_of(type, [&](std::int64_t i) {
    const double value = std::abs(expected(i));
    return std::isfinite(value) ? value : 0;
  });
  return largest_of(type,
                    [&](std::int64_t i) { return element_error(actual(i), expected(i), scale, tolerance); });
}

auto floats_of(const Tensor& tensor) {
  return [data = static_cast<const float*>(tensor.data())](std::int64_t i) {
    return static_cast<double>(data[i]);
  };
}
auto bf16s_of(const Tensor& tensor) {
  return [data = static_cast<const std::uint16_t*>(tensor.data())](std::int64_t i) {
    return static_cast<double>(std::bit_cast<float>(std::uint32_t{data[i]} << 16));
  };
}
auto doubles_of(const Tensor& tensor) {
  return [&tensor](std::int64_t i) { return tensor.as_double(i); };
}

}  // namespace

Tolerance tolerance_of(const Kernel& kernel, bool tf32) {
  constexpr double rounding_of_tf32 = 0x1p-10;  // tensor cores cut what they read
  Tolerance tolerance;
  if (tf32) tolerance = {.relative = 2 * rounding_of_tf32, .absolute = 2 * rounding_of_tf32};
  if (kernel.kind != KernelClass::attention) return tolerance;
  const Node& attention = kernel.body.node(kernel.anchor);
  const double rounding = neighbours_apart(kernel.body.type(attention.outputs.at(0)).dtype) / 2;
  tolerance.absolute = std::max(tolerance.absolute, rounding);
  return tolerance;
}

double output_error(const TensorType& type, const Tensor& actual, const Tensor& expected,
                    const Tolerance& given) {
  Tolerance tolerance = given;
  tolerance.relative = std::max(tolerance.relative, neighbours_apart(type.dtype));
  if (type.dtype == DType::f32) return float_error(type, floats_of(actual), floats_of(expected), tolerance);
  if (type.dtype == DType::bf16) return float_error(type, bf16s_of(actual), bf16s_of(expected), tolerance);
  if (is_float(type.dtype)) return float_error(type, doubles_of(actual), doubles_of(expected), tolerance);
  const std::size_t size = dtype_size(type.dtype);
  const auto* a = static_cast<const char*>(actual.data());
  const auto* e = static_cast<const char*>(expected.data());
  return largest_of(type, [&](std::int64_t i) {
    const auto offset = static_cast<std::size_t>(i) * size;
    return std::memcmp(a + offset, e + offset, size) != 0 ? infinity : 0;
  });
}

}  // namespace sylvite
