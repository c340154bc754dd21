#pragma once
// Comparisons that are right for NaN and infinity wherever a number comes from.
//
// The code generator takes for granted that plain arithmetic, conversions of f16 and what selections choose are finite, and
// uses that also in the strict comparisons of halide_math.h: there such a number equals itself and is below infinity.
// Those are for numbers that come from loads and strict operations.

#include <Halide.h>

namespace sylvite {

/// For integers the plain comparisons.
[[nodiscard]] Halide::Expr is_equal(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr is_less(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr is_at_most(const Halide::Expr& a, const Halide::Expr& b);

}  // namespace sylvite
