#include "frontend/values/narrow.h"

#include <limits>

namespace sylvite {
namespace {

constexpr int e8m0_nan = 0xff;
constexpr int e8m0_bias = 127;

std::uint8_t encode_e8m0(double value) {
  if (std::isnan(value) || value < 0) return e8m0_nan;
  if (value <= std::ldexp(1.0, -e8m0_bias)) return 0;
  if (value > std::ldexp(1.0, e8m0_bias)) return e8m0_nan;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
  return static_cast<std::uint8_t>((fraction == 0.5 ? exponent - 1 : exponent) + e8m0_bias);
}

}  // namespace

double largest_narrow(DType dtype) {
  if (dtype == DType::f8e8m0) return std::ldexp(1.0, e8m0_bias);
  return decode_narrow(dtype, static_cast<std::uint8_t>(narrow_format(dtype).largest));
}

std::uint8_t encode_narrow(DType dtype, double value) {
  if (dtype == DType::f8e8m0) return encode_e8m0(value);
  const NarrowFormat format = narrow_format(dtype);
  const int sign = std::signbit(value) ? format.sign_mask() : 0;
  if (std::isnan(value))
    return static_cast<std::uint8_t>(format.has_negative_zero ? sign | format.nan : format.nan);
  const double size = std::fabs(value);
  const double beyond = 2 * largest_narrow(dtype);
  int code = format.largest + 1;
  if (size < beyond) {
    const int exponent =
        size == 0 ? format.smallest_exponent() : std::max(std::ilogb(size), format.smallest_exponent());
    const double units = std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent));
    code = static_cast<int>(units) + ((exponent - format.smallest_exponent()) << format.mantissa_bits);
  }
  if (code == 0 && !format.has_negative_zero) return 0;
  if (code <= format.largest) return static_cast<std::uint8_t>(sign | code);
  switch (format.overflow) {
    case NarrowFormat::Overflow::to_infinity:
      return static_cast<std::uint8_t>(sign | (format.largest + 1));
    case NarrowFormat::Overflow::to_largest:
      return static_cast<std::uint8_t>(sign | format.largest);
    default:
      return static_cast<std::uint8_t>(format.has_negative_zero ? sign | format.nan : format.nan);
  }
}

double decode_narrow(DType dtype, std::uint8_t code) {
  if (dtype == DType::f8e8m0)
    return code == e8m0_nan ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - e8m0_bias);
  const NarrowFormat format = narrow_format(dtype);
  if (!format.has_negative_zero && code == format.nan) return std::numeric_limits<double>::quiet_NaN();
  const int magnitude = code & (format.sign_mask() - 1);
  const double sign = (code & format.sign_mask()) != 0 ? -1.0 : 1.0;
  if (magnitude > format.largest) {
    const bool is_infinite =
        format.overflow == NarrowFormat::Overflow::to_infinity && magnitude == format.largest + 1;
    return std::copysign(
        is_infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN(),
        sign);
  }
  const int ones = 1 << format.mantissa_bits;
  if (magnitude < ones)
    return sign * std::ldexp(magnitude, format.smallest_exponent() - format.mantissa_bits);
  const int exponent = (magnitude >> format.mantissa_bits) - format.bias;
  return sign * std::ldexp((magnitude & (ones - 1)) + ones, exponent - format.mantissa_bits);
}

}  // namespace sylvite
