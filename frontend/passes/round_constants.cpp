#include "frontend/passes/round_constants.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "base/parts.h"
#include "frontend/values/half.h"

namespace sylvite {
namespace {

constexpr float largest_bf16 = 3.3895313892515355e38F;
constexpr float largest_f16 = 65504;

/// Finite numbers stay finite; NaN stays NaN. Bounds by comparison, so that a loop of it makes vectors.
float within(float x, float largest) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float bounded = x > largest ? largest : x < -largest ? -largest : x;
  return x == infinity || x == -infinity ? x : bounded;
}

/// to[i] = from[i], rounded to the nearest.
template <typename Narrow>
void round_all(const float* from, std::uint16_t* to, std::int64_t count, float largest) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = Narrow(within(from[i], largest)).bits;
}

float value_of(std::uint16_t bits) {
  BFloat16 number;
  number.bits = bits;
  return static_cast<float>(number);
}

/// How far from the middle of its two neighbours a number is, as shares of their distance.
struct Nearness {
  float least, most;
};

/// How much the rounded number changes when x goes to its other neighbour; 0 if x is not so near the middle.
float turn_of(float x, float error, const Nearness& nearness) {
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(x) & 0x7f800000U;
  const float step = std::bit_cast<float>(exponent) * 0x1p-7F;  // between neighbours
  const float distance = 0.5F * step - std::fabs(error);
  const bool is_near = distance >= nearness.least * step && distance < nearness.most * step;
  return is_near ? std::copysign(step, -error) : 0.0F;
}

/// One tap's numbers of a filter: `count` channels, each `taps` behind the last.
struct Tap {
  const float* from;
  std::uint16_t* to;
  const float* errors;
  std::int64_t count;
  std::int64_t taps;
};

/// Turns numbers near the middle until the sum of the errors is as close to zero as a turn can bring it.
bool turn_numbers(const Tap& tap, const Nearness& nearness, float& sum) {
  for (std::int64_t i = 0; i < tap.count * tap.taps; i += tap.taps) {
    const float turn = turn_of(tap.from[i], tap.errors[i], nearness);
    if (!(std::fabs(sum + turn) < std::fabs(sum))) continue;
    const auto lower = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(tap.from[i]) >> 16);
    tap.to[i] = tap.to[i] == lower ? static_cast<std::uint16_t>(lower + 1) : lower;
    sum += turn;
    if (std::fabs(sum) <= std::fabs(turn) / 2) return true;
  }
  return false;
}

/// One filter [channels, taps]; `errors` has room for it.
void round_filter(const float* from, std::uint16_t* to, std::int64_t taps, std::vector<float>& errors) {
  const std::int64_t size = std::ssize(errors);
  round_all<BFloat16>(from, to, size, largest_bf16);
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const bool counts = std::fabs(from[i]) < largest_bf16;  // NaN does not
    errors[i] = counts ? value_of(to[i]) - from[i] : 0.0F;
  }
  for (std::int64_t i = 0; i < taps; ++i) {
    const Tap tap{from + i, to + i, errors.data() + i, size / taps, taps};
    float sum = 0;
    for (std::int64_t j = 0; j < size; j += taps) sum += tap.errors[j];
    constexpr float near = 0.04F;
    constexpr float less_near = 0.15F;
    if (!turn_numbers(tap, {0, near}, sum)) turn_numbers(tap, {near, less_near}, sum);
  }
}

}  // namespace

Tensor rounded(const Tensor& tensor, DType narrow) {
  Tensor result(narrow, tensor.dims());
  const auto* from = static_cast<const float*>(tensor.data());
  auto* to = static_cast<std::uint16_t*>(result.mutable_data());
  for_parts(tensor.size(), tensor.byte_size(), [&](std::int64_t begin, std::int64_t end) {
    if (narrow == DType::bf16)
      round_all<BFloat16>(from + begin, to + begin, end - begin, largest_bf16);
    else
      round_all<Half>(from + begin, to + begin, end - begin, largest_f16);
  });
  return result;
}

Tensor rounded_filters(const Tensor& filters) {
  Tensor result(DType::bf16, filters.dims());
  const std::int64_t count = filters.dims()[0];
  const std::int64_t channels = filters.dims()[1];
  if (filters.size() == 0) return result;
  const std::int64_t size = filters.size() / count;
  const auto* from = static_cast<const float*>(filters.data());
  auto* to = static_cast<std::uint16_t*>(result.mutable_data());
  for_parts(count, filters.byte_size(), [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> errors(static_cast<std::size_t>(size));
    for (std::int64_t i = begin; i < end; ++i)
      round_filter(from + i * size, to + i * size, size / channels, errors);
  });
  return result;
}

}  // namespace sylvite
