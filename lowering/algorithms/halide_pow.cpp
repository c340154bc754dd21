#include <cmath>
#include <limits>

#include "lowering/algorithms/halide_math.h"

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::select;
using Halide::Internal::Call;

constexpr double infinite = std::numeric_limits<double>::infinity();

/// A constant exponent that LLVM does not see. It makes products, quotients and roots of halves and the like, which give no number
/// for zero and infinity. The power of what is no number is none, whatever such an exponent is.
Expr hidden(const Expr& base, const Expr& exponent) {
  const auto number = Halide::Internal::as_const_float(exponent);
  return number && *number != std::floor(*number) ? select(is_not_a_number(base), base, exponent) : exponent;
}

/// On a device, by a constant exponent that is a multiple of a quarter up to 2: products of roots, in a tenth of the time of the
/// library's function and as exact. Undefined where the exponent is another.
Expr power_by_roots(const Expr& x, const Expr& y) {
  const auto number = Halide::Internal::as_const_float(y);
  const double quarters = number ? *number * 4 : 0.5;
  if (quarters != std::floor(quarters) || std::abs(quarters) > 8 || quarters == 0) return {};
  const auto count = static_cast<int>(std::abs(quarters));
  if (count % 4 == 0) return {};  // graphs have these as products
  const Expr root = math_sqrt(x);
  Expr power = count % 2 == 0 ? root : math_sqrt(root);
  if (count % 4 == 3) power = strict_mul(power, root);
  if (count > 4) power = strict_mul(power, x);
  const Expr inverted = quarters < 0 ? strict_div(Expr(1.0F), power) : power;
  // The root of -0 is -0, that of -infinity is no number; their powers are those of 0 and infinity.
  const double at_infinity = quarters < 0 ? 0 : infinite, at_zero = quarters < 0 ? infinite : 0;
  return select(strict_equal(x, Expr(0.0F)), Expr(static_cast<float>(at_zero)),
                select(strict_equal(x, Expr(-std::numeric_limits<float>::infinity())),
                       Expr(static_cast<float>(at_infinity)), inverted));
}

/// log2 of an f32 that has no sign, in f64, to 4e-12 of it: of the mantissa in [sqrt(1/2), sqrt(2)) the series of
/// log((1 + s) / (1 - s)).
Expr log2_of(const Expr& size) {
  const Expr is_subnormal = strict_less(size, Expr(std::numeric_limits<float>::min()));
  const Expr scaled = select(is_subnormal, strict_mul(size, Expr(8388608.0F)), size);
  const Expr offset = Halide::reinterpret<int>(scaled) - 0x3f3504f3;
  const Expr exponent = cast<double>((offset >> 23) - select(is_subnormal, 23, 0));
  const Expr mantissa = cast<double>(Halide::reinterpret<float>((offset & 0x7fffff) + 0x3f3504f3));
  const Expr s = (mantissa - Expr(1.0)) / (mantissa + Expr(1.0));
  const Expr square = s * s;
  Expr series = Expr(0.0);
  for (int k = 6; k >= 0; --k) series = series * square + Expr(2 / ((2 * k + 1) * std::log(2.0)));
  const Expr is_infinite = strict_less(Expr(std::numeric_limits<float>::max()), size);
  return select(strict_equal(size, Expr(0.0F)), Expr(-infinite),
                select(is_infinite, Expr(infinite), exponent + s * series));
}

/// 2^z of an f64 within 200 of zero, to 2e-10 of it.
Expr real_power_of_two(const Expr& z) {
  const Expr whole = Halide::round(z);
  const Expr rest = (z - whole) * Expr(std::log(2.0));
  double factor = 1.0 / 40320;
  Expr series = Expr(factor);
  for (int k = 8; k > 0; --k) series = series * rest + Expr(factor *= k);
  const Expr bits = cast<std::int64_t>(cast<std::int32_t>(whole) + 1023) << 52;
  return series * Halide::reinterpret<double>(bits);
}

}  // namespace

/// In f64 nothing underflows or overflows between log2 and 2^z, and one rounding to f32 is left. Libm's function takes one
/// number at a time, Halide's own loses special values.
Expr math_pow(const Expr& x, const Expr& y) {
  if (x.type().bits() == 64) return Call::make(x.type(), "pow", {x, hidden(x, y)}, Call::PureExtern);
  if (DeviceMath::is_used())
    if (const Expr power = power_by_roots(x, y); power.defined()) return power;
  if (DeviceMath::is_used()) return Call::make(x.type(), "powf", {x, hidden(x, y)}, Call::PureExtern);
  const Expr zero = Expr(0.0F);
  const Expr one = Expr(1.0F);
  const Expr size = Halide::abs(x);
  // A constant that is zero or infinite, or an infinite exponent: plain arithmetic would be undefined.
  const Expr exponent = strict_mul(cast<double>(y), log2_of(size));
  const Expr inside =
      Halide::clamp(select(strict_equal(size, one), Expr(0.0), exponent), Expr(-200.0), Expr(200.0));
  const Expr value = cast<float>(real_power_of_two(inside));
  const Expr half = strict_mul(y, Expr(0.5F));
  const Expr is_integer = strict_equal(Halide::floor(y), y);
  const Expr is_odd = is_integer && !strict_equal(Halide::floor(half), half);
  const Expr has_sign = Halide::reinterpret<int>(x) < 0;
  const Expr is_number =
      !strict_less(x, zero) || is_integer || strict_equal(x, Expr(-std::numeric_limits<float>::infinity()));
  const Expr not_a_number = Expr(std::numeric_limits<float>::quiet_NaN());
  const Expr result =
      keep_nan(x, keep_nan(y, select(is_number, select(is_odd && has_sign, -value, value), not_a_number)));
  return select(strict_equal(y, zero) || strict_equal(x, one), one, result);
}

}  // namespace sylvite
