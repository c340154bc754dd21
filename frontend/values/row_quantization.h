#pragma once
// How a row of f32 becomes 8-bit integers at run time. The interpreter and compiled kernels both follow it to
// the bit.

#include <cstdint>

namespace sylvite {

/// Unsigned steps with a zero point. With `high` the largest element of a row, or 0, and `low` the largest of
/// the negated elements, or 0, all in f32 and rounded to nearest, ties to even:
///   range = high + low,  inverse = 255 / range,  scale = range * (1/255),  zero = round(low * inverse),
///   step = min(round(x * inverse) + zero, 255),  which stands for (step - zero) * scale.
/// Why a zero point: behind a GELU products of 128 random rows have errors of 0.0107 of their root mean
/// square with it and 0.0150 without; behind a layer norm with outlying channels 0.0295 and 0.0385.
/// A row whose range is at most `smallest_range` counts as zeros: scale, inverse, zero and all steps are 0. A
/// row that is not finite, or whose range is not, has the scale NaN, and so are all results made of it.
inline constexpr float activation_levels = 255;
inline constexpr float smallest_range = 0x1p-100F;

/// Block by block of a row, signed steps: with `peak` the largest magnitude of a block, in f32,
///   inverse = 127 / peak,  scale = peak * (1/127),  step = round(x * inverse).
/// A block whose peak is at most `smallest_range` counts as zeros; one that is not finite has the scale NaN.
inline constexpr float block_levels = 127;

/// Weights: signed steps without a zero point, so that the largest magnitude of a column is 127 of them.
inline constexpr float weight_levels = 127;

/// Longer sums of products of such steps might not fit 32 bits.
inline constexpr std::int64_t longest_quantized_fold = std::int64_t{1} << 16;

}  // namespace sylvite
