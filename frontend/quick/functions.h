#pragma once
// Functions of f32 that compilers can make vectors of, accurate to a few units of the last place (tanh and erf near 0, too);
// and copies and folds of rows.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace sylvite::quick {

inline float exp_of(float x) {
  constexpr float to_integer = 12582912;  // 1.5 * 2^23: sums with it are rounded to integers
  constexpr float log2_e = 1.44269504F;
  constexpr float ln2_high = 0.693359375F;
  constexpr float ln2_low = -2.12194440e-4F;
  const float above = x < -104 ? -104 : x;  // NaN stays
  const float bounded = above > 89 ? 89 : above;
  const float shifted = bounded * log2_e + to_integer;
  const float whole = shifted - to_integer;
  const float r = (bounded - whole * ln2_high) - whole * ln2_low;
  float series = 1.0F / 5040;
  series = series * r + 1.0F / 720;
  series = series * r + 1.0F / 120;
  series = series * r + 1.0F / 24;
  series = series * r + 1.0F / 6;
  series = series * r + 0.5F;
  series = series * r + 1;
  series = series * r + 1;
  // 2^whole in two factors, as it may be below the smallest normal number.
  const std::int32_t exponent =
      std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(to_integer);
  const std::int32_t half = exponent >> 1;
  const auto power_of_2 = [](std::int32_t e) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(e + 127) << 23);
  };
  return series * power_of_2(half) * power_of_2(exponent - half);
}

inline float sigmoid_of(float x) {
  return 1 / (1 + exp_of(-x));
}

inline float tanh_of(float x) {
  const float size = std::fabs(x);
  const float far = 1 - 2 / (exp_of(2 * size) + 1);
  const float s = x * x;
  float series = 21844.0F / 6081075;
  series = series * s - 1382.0F / 155925;
  series = series * s + 62.0F / 2835;
  series = series * s - 17.0F / 315;
  series = series * s + 2.0F / 15;
  series = series * s - 1.0F / 3;
  return size < 0.4F ? x + x * s * series : std::copysign(far, x);
}

/// By a rational approximation (Abramowitz and Stegun, 7.1.26) away from 0, by its series near it.
inline float erf_of(float x) {
  constexpr float two_by_root_pi = 1.12837917F;
  const float size = std::fabs(x);
  const float t = 1 / (1 + 0.3275911F * size);
  float sum = 1.061405429F;
  sum = sum * t - 1.453152027F;
  sum = sum * t + 1.421413741F;
  sum = sum * t - 0.284496736F;
  sum = sum * t + 0.254829592F;
  const float far = 1 - sum * t * exp_of(-size * size);
  const float s = x * x;
  float series = 1.0F / 9360;
  series = series * s - 1.0F / 1320;
  series = series * s + 1.0F / 216;
  series = series * s - 1.0F / 42;
  series = series * s + 0.1F;
  series = series * s - 1.0F / 3;
  series = series * s + 1;
  return size < 0.5F ? two_by_root_pi * x * series : std::copysign(far, x);
}

// NaN wins.
inline float smaller(float a, float b) {
  return a != a || a < b ? a : b;
}
inline float larger(float a, float b) {
  return a != a || a > b ? a : b;
}

/// As std::copy_n. Rows are short here: a call for each would take longer than the copy.
inline void copy_row(const float* from, std::int64_t count, float* to) {
  constexpr std::int64_t block = 8;
  std::int64_t i = 0;
  for (; i + block <= count; i += block) std::memcpy(to + i, from + i, block * sizeof(float));
  const auto copy_if_left = [&](auto part) {
    if (i + part > count) return;
    std::memcpy(to + i, from + i, part * sizeof(float));
    i += part;
  };
  copy_if_left(std::integral_constant<std::int64_t, 4>{});
  copy_if_left(std::integral_constant<std::int64_t, 2>{});
  copy_if_left(std::integral_constant<std::int64_t, 1>{});
}

constexpr std::int64_t fold_lanes = 16;

/// Folds a row in lanes side by side: add(lane, x) takes an element, merge(a, b) makes one of two lanes. REQUIRES an order
/// that does not matter.
template <typename Add, typename Merge>
float fold_row(const float* row, std::int64_t count, float start, const Add& add, const Merge& merge) {
  float lanes[fold_lanes];
  for (float& lane : lanes) lane = start;
  std::int64_t i = 0;
  for (; i + fold_lanes <= count; i += fold_lanes)
    for (std::int64_t lane = 0; lane < fold_lanes; ++lane) lanes[lane] = add(lanes[lane], row[i + lane]);
  for (; i < count; ++i) lanes[0] = add(lanes[0], row[i]);
  float result = start;
  for (const float lane : lanes) result = merge(result, lane);
  return result;
}

/// The sum of value(x) over a row: long rows in parts, whose sums are added in double.
template <typename Value>
double sum_row(const float* row, std::int64_t count, const Value& value) {
  constexpr std::int64_t part = 4096;
  double sum = 0;
  for (std::int64_t first = 0; first < count; first += part)
    sum += static_cast<double>(fold_row(
        row + first, std::min(part, count - first), 0, [&](float total, float x) { return total + value(x); },
        [](float a, float b) { return a + b; }));
  return sum;
}

/// e^x over its sum; `to` may be `from`.
inline void softmax_row(const float* from, float* to, std::int64_t count) {
  const float peak = fold_row(from, count, -std::numeric_limits<float>::infinity(), larger, larger);
  for (std::int64_t i = 0; i < count; ++i) to[i] = exp_of(from[i] - peak);
  const auto sum = static_cast<float>(sum_row(to, count, [](float x) { return x; }));
  for (std::int64_t i = 0; i < count; ++i) to[i] /= sum;
}

}  // namespace sylvite::quick
