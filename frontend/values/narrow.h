#pragma once
// Numbers of 8, 4 and 2 bits as storage: each takes a byte in memory, is converted exactly on the way out and
// rounded once on the way in, and nothing is computed in it.

#include <cmath>
#include <cstdint>

#include "sylvite/types.h"

namespace sylvite {

/// How the bits of a narrow float are read: sign, exponent, mantissa, and what the codes at the ends mean.
struct NarrowFormat {
  enum class Overflow { to_nan, to_infinity, to_largest };  ///< of finite numbers beyond `largest`
  int mantissa_bits;
  int bias;
  int sign_bit;            ///< place of the sign
  int largest;             ///< code of the largest finite magnitude; magnitudes above it are special
  int nan;                 ///< code of NaN, sign apart
  Overflow overflow;       ///< also what infinity becomes, except where there is one
  bool has_negative_zero;  ///< false: the code of -0 is NaN, and small negative numbers become +0
  [[nodiscard]] int sign_mask() const { return 1 << sign_bit; }
  [[nodiscard]] int smallest_exponent() const { return 1 - bias; }
};

/// REQUIRES is_narrow_float(dtype) and not f8e8m0, which is an exponent alone: 2^(code - 127), 255 for NaN.
[[nodiscard]] constexpr NarrowFormat narrow_format(DType dtype) {
  using Overflow = NarrowFormat::Overflow;
  switch (dtype) {
    case DType::f8e4m3fn:
      return {3, 7, 7, 0x7e, 0x7f, Overflow::to_nan, true};
    case DType::f8e4m3fnuz:
      return {3, 8, 7, 0x7f, 0x80, Overflow::to_nan, false};
    case DType::f8e5m2:
      return {2, 15, 7, 0x7b, 0x7e, Overflow::to_infinity, true};
    case DType::f8e5m2fnuz:
      return {2, 16, 7, 0x7f, 0x80, Overflow::to_nan, false};
    default:  // f4e2m1 has neither NaN nor infinity: NaN becomes -0
      return {1, 1, 3, 0x7, 0x8, Overflow::to_largest, true};
  }
}

/// The largest finite number; for f8e8m0 2^127.
[[nodiscard]] double largest_narrow(DType dtype);

/// Rounds to nearest, ties to even; f8e8m0 rounds up and makes negative numbers NaN.
[[nodiscard]] std::uint8_t encode_narrow(DType dtype, double value);
[[nodiscard]] double decode_narrow(DType dtype, std::uint8_t code);

template <DType dtype>
struct NarrowFloat {
  std::uint8_t bits = 0;
  NarrowFloat() = default;
  explicit NarrowFloat(double value) : bits(encode_narrow(dtype, value)) {}
  explicit operator float() const { return static_cast<float>(decode_narrow(dtype, bits)); }
  explicit operator double() const { return decode_narrow(dtype, bits); }
};

/// Keeps the low bits of what it is made from, as wider integers do.
template <int width, bool is_signed>
struct NarrowInteger {
  static constexpr std::int64_t low = is_signed ? -(1 << (width - 1)) : 0;
  static constexpr std::int64_t high = is_signed ? (1 << (width - 1)) - 1 : (1 << width) - 1;
  std::int8_t number = 0;
  NarrowInteger() = default;
  explicit NarrowInteger(std::int64_t value) {
    const std::int64_t bits = value & ((1 << width) - 1);
    number = static_cast<std::int8_t>(bits > high ? bits - (1 << width) : bits);
  }
  explicit operator std::int64_t() const { return number; }
};

}  // namespace sylvite
