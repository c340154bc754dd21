#include "autotune/verify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace sylvite {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Calls visit(i) for every stored element that is not padding.
template <typename Visit>
void for_each_element(const TensorType& type, Visit visit) {
  Dims stored = type.storage_dims();
  std::int64_t count = checked_product(stored, "output");
  std::int64_t block = type.layout.channel_block;
  if (block == 0) {
    for (std::int64_t i = 0; i < count; ++i) {
      visit(i);
    }
    return;
  }
  // Stored as N, C/b, spatial..., b.
  std::int64_t channels = type.dims().at(1);
  std::int64_t blocks = stored.at(1);
  std::int64_t spatial = 1;
  for (std::size_t d = 2; d + 1 < stored.size(); ++d) {
    spatial *= stored[d];
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t channel = (i / block / spatial) % blocks * block + i % block;
    if (channel < channels) {
      visit(i);
    }
  }
}

double element_error(double actual, double expected, double scale, const Tolerance& tolerance) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) {
    return 0;
  }
  if (!std::isfinite(actual) || !std::isfinite(expected)) {
    return infinity;
  }
  return std::abs(actual - expected) / (tolerance.absolute * scale + tolerance.relative * std::abs(expected));
}

/// How far apart neighbouring values of a narrow type are, relative to them, at most: results that differ by
/// rounding in f32 may round to neighbours.
double neighbours_apart(DType dtype) {
  if (dtype == DType::bf16) return 0x1p-7;
  return dtype == DType::f16 ? 0x1p-10 : 0;
}

/// `at(tensor, i)` gives element i as a double.
template <typename At>
double float_error(const TensorType& type, const Tensor& actual, const Tensor& expected,
                   const Tolerance& tolerance, At at) {
  double scale = 0;
  for_each_element(type, [&](std::int64_t i) {
    double value = std::abs(at(expected, i));
    if (std::isfinite(value)) {
      scale = std::max(scale, value);
    }
  });
  double worst = 0;
  for_each_element(type, [&](std::int64_t i) {
    worst = std::max(worst, element_error(at(actual, i), at(expected, i), scale, tolerance));
  });
  return worst;
}

}  // namespace

double output_error(const TensorType& type, const Tensor& actual, const Tensor& expected,
                    const Tolerance& given) {
  Tolerance tolerance = given;
  tolerance.relative = std::max(tolerance.relative, neighbours_apart(type.dtype));
  if (type.dtype == DType::f32) {
    const auto* a = static_cast<const float*>(actual.data());
    const auto* e = static_cast<const float*>(expected.data());
    return float_error(type, actual, expected, tolerance, [&](const Tensor& tensor, std::int64_t i) {
      return static_cast<double>((&tensor == &actual ? a : e)[i]);
    });
  }
  if (is_float(type.dtype)) {
    return float_error(type, actual, expected, tolerance,
                       [](const Tensor& tensor, std::int64_t i) { return tensor.as_double(i); });
  }
  std::size_t size = dtype_size(type.dtype);
  const auto* a = static_cast<const char*>(actual.data());
  const auto* e = static_cast<const char*>(expected.data());
  double error = 0;
  for_each_element(type, [&](std::int64_t i) {
    auto offset = static_cast<std::size_t>(i) * size;
    if (std::memcmp(a + offset, e + offset, size) != 0) {
      error = infinity;
    }
  });
  return error;
}

}  // namespace sylvite
