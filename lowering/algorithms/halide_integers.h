#pragma once
// Arithmetic of integers that wraps, as ONNX Runtime's and torch's does.
//
// Halide and LLVM take for granted that signed numbers of 32 bits and more do not overflow, and so that (x << 3) >> 3 is x:
// hashes and generators of random numbers overflow on purpose. Where the numbers may, these compute without a sign.

#include <Halide.h>

namespace sylvite {

/// Of floats: the strict operations of halide_math.h.
[[nodiscard]] Halide::Expr wrapped_add(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr wrapped_sub(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr wrapped_mul(const Halide::Expr& a, const Halide::Expr& b);
/// -x of an integer.
[[nodiscard]] Halide::Expr wrapped_negative(const Halide::Expr& x);
/// x times 2 to the power of `amount`, of integers; `amount` is at least 0 and less than the bits of x.
[[nodiscard]] Halide::Expr wrapped_shift(const Halide::Expr& x, const Halide::Expr& amount);
/// `a` to the power of `b`, of integers; a negative exponent gives 0, or +-1 for bases +-1.
[[nodiscard]] Halide::Expr wrapped_power(const Halide::Expr& a, const Halide::Expr& b);

}  // namespace sylvite
