#pragma once
// Rows of 8-bit integers in expressions: frontend/values/row_quantization.h, to the bit. Internal to
// lowering/.

#include <Halide.h>

namespace sylvite {

/// x, or -x where `negated`, as an integer whose order is that of numbers above zero, with NaN above infinity
/// and the others below: its bits. The largest key of a row and 0 is that of its `high`, or of its `low`; one
/// of the two shows a NaN. Of f32 an i32; of BFloat(16) an i16, for which vectors hold twice as many.
[[nodiscard]] Halide::Expr extreme_key(const Halide::Expr& x, const Halide::Expr& negated);

/// What the extremes of a row make of it. The scale is NaN where the row is not finite.
struct RowQuantization {
  Halide::Expr inverse, scale;  ///< f32
  Halide::Expr zero;            ///< i32
};
[[nodiscard]] RowQuantization row_quantization(const Halide::Expr& high_key, const Halide::Expr& low_key);

/// x, an f32, as u8 steps.
[[nodiscard]] Halide::Expr quantized_steps(const Halide::Expr& x, const RowQuantization& row);

/// The magnitude of an f32 as an integer whose order is that of numbers, NaN above infinity.
[[nodiscard]] Halide::Expr magnitude_key(const Halide::Expr& x);
/// What the largest magnitude of a block makes of it.
struct BlockQuantization {
  Halide::Expr inverse, scale;  ///< f32
};
[[nodiscard]] BlockQuantization block_quantization(const Halide::Expr& peak_key);
/// x, an f32 of a block, as i8 steps.
[[nodiscard]] Halide::Expr signed_steps(const Halide::Expr& x, const Halide::Expr& inverse);

/// The f32 that an i32 sum of products of steps stands for.
[[nodiscard]] Halide::Expr dequantized_sum(const Halide::Expr& sum, const RowQuantization& row,
                                           const Halide::Expr& column_scale, const Halide::Expr& column_sum);

}  // namespace sylvite
