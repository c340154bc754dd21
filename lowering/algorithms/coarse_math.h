#pragma once
// Activations of f32 whose results are rounded to bf16 right away: eight bits of the result count, and half
// the instructions of halide_math.h's give them. For a processor's vectors; GPUs have functions of their own.

#include <Halide.h>

namespace sylvite {

/// exp of x <= 0, or of NaN, with a relative error below 2^-13; 0 below -88, as math_exp_up_to_zero.
[[nodiscard]] Halide::Expr coarse_exp_up_to_zero(const Halide::Expr& x);
/// x * sigmoid(x) with a relative error below 2^-12; NaN stays NaN.
[[nodiscard]] Halide::Expr coarse_silu(const Halide::Expr& x);
/// x * Phi(x), Phi the normal distribution or (`by_tanh`) its usual approximation by tanh. The error is below
/// 2^-11 of the result, or of min(|x|, 1) / 2 where that is more; NaN stays NaN.
[[nodiscard]] Halide::Expr coarse_gelu(const Halide::Expr& x, bool by_tanh);

}  // namespace sylvite
