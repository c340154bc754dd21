#pragma once
// Functions of f32 and f64 expressions that vectorise and treat infinities and NaN as IEEE says. Halide's own
// tanh, sin, ... call libm per lane; its exp, erf, max and min lose special values; and by default its code
// generator assumes that floats are finite. Here every operation whose operands may be special is one of the
// strict_* below; polynomials run on clamped operands and may be contracted to FMA.
//
// f32: relative error about 1e-6 or better over the whole range. f64: libm per lane (slow, exact).

#include <Halide.h>

namespace sylvite {

/// While one lives, functions built on this thread are those of a GPU's math library where that is faster:
/// exp there is one instruction and a few around it. The same accuracy and special values.
class DeviceMath {
 public:
  DeviceMath();
  ~DeviceMath();
  DeviceMath(const DeviceMath&) = delete;
  DeviceMath& operator=(const DeviceMath&) = delete;
  [[nodiscard]] static bool is_used();
};

/// IEEE operations the code generator neither reorders nor assumes finite. For integers, the plain operation.
[[nodiscard]] Halide::Expr strict_add(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr strict_sub(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr strict_mul(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr strict_div(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr strict_less(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr strict_less_equal(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr strict_equal(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr is_not_a_number(const Halide::Expr& x);  ///< false for integers
[[nodiscard]] Halide::Expr is_infinity(const Halide::Expr& x);      ///< likewise
/// Propagate NaN from either side.
[[nodiscard]] Halide::Expr nan_max(const Halide::Expr& a, const Halide::Expr& b);
[[nodiscard]] Halide::Expr nan_min(const Halide::Expr& a, const Halide::Expr& b);
/// `value` where x is no NaN, else x.
[[nodiscard]] Halide::Expr keep_nan(const Halide::Expr& x, const Halide::Expr& value);

[[nodiscard]] Halide::Expr math_exp(const Halide::Expr& x);
/// exp of x <= 0, or of NaN. Below -87 it is 0 and not a subnormal number, which takes processors a hundred
/// cycles: for softmax, where masked and far off positions are many.
[[nodiscard]] Halide::Expr math_exp_up_to_zero(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_log(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_log1p(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_sin(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_cos(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_tan(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_asin(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_acos(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_atan(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_sinh(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_cosh(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_tanh(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_asinh(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_acosh(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_atanh(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_erf(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_sqrt(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_rsqrt(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_sigmoid(const Halide::Expr& x);
[[nodiscard]] Halide::Expr math_silu(const Halide::Expr& x);  ///< x * sigmoid(x); NaN at -infinity
[[nodiscard]] Halide::Expr math_softplus(const Halide::Expr& x);
/// Of f32 on a GPU, to about 1e-6 of the result: for results of 16 bits.
[[nodiscard]] Halide::Expr device_sigmoid(const Halide::Expr& x);
[[nodiscard]] Halide::Expr device_tanh(const Halide::Expr& x);
/// As C has it, for all specials: of f32 to 0.51 units in the last place.
[[nodiscard]] Halide::Expr math_pow(const Halide::Expr& x, const Halide::Expr& y);
/// As C has it, for all specials, exact: what division to a whole number leaves, with the sign of x.
[[nodiscard]] Halide::Expr math_fmod(const Halide::Expr& x, const Halide::Expr& y);

/// The number in the type of `like`.
[[nodiscard]] Halide::Expr constant_like(const Halide::Expr& like, double value);

}  // namespace sylvite
