#pragma once
// 16-bit floats as storage: converted to float for arithmetic, rounded to nearest even on the way back.

#include <bit>
#include <cstdint>

namespace sylvite {

struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value) {
    auto word = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffU) > 0x7f800000U;
    if (!is_nan) word += 0x7fffU + ((word >> 16) & 1U);
    bits = static_cast<std::uint16_t>(is_nan ? (word >> 16) | 0x40U : word >> 16);
  }
  /// Rounds once: the float in between is rounded to odd, so that the second rounding sees what was cut off.
  explicit BFloat16(double value) : BFloat16(round_to_odd(value)) {}
  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  explicit operator double() const { return static_cast<float>(*this); }

 private:
  static float round_to_odd(double value) {
    const auto nearest = static_cast<float>(value);
    const double error = value - static_cast<double>(nearest);
    if (!(error > 0 || error < 0)) return nearest;  // exact, infinite or not a number
    auto word = std::bit_cast<std::uint32_t>(nearest);
    if ((word & 1U) != 0) return nearest;
    const bool away_from_zero = (error < 0) == (value > 0);
    return std::bit_cast<float>(away_from_zero ? word - 1 : word + 1);
  }
};

/// IEEE binary16. GCC's _Float16 does the conversions, so subnormals and infinities are exact.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(float value) : bits(std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))) {}
  explicit Half(double value) : bits(std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))) {}
  explicit operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
  explicit operator double() const { return static_cast<float>(*this); }
};

}  // namespace sylvite
