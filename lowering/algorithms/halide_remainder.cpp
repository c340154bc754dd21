#include <cmath>
#include <limits>
#include <string>

#include "lowering/algorithms/halide_math.h"

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::select;
using Halide::Internal::Call;

/// What is left of |x| once multiples of `size` are taken away, exact, as f64 of two f32. A quotient below 2^277 is found 28 bits at
/// a time: such a part times 24 bits of the divisor fits in 53, and so does what it leaves. A part may be one too large or too small.
Expr rest_of(const Expr& x, const Expr& size) {
  constexpr int bits = 28;
  Expr rest = cast<double>(Halide::abs(x));
  const Expr inverse = strict_div(Expr(1.0), size);
  for (int shift = 9 * bits; shift >= 0; shift -= bits) {
    const Expr step = strict_mul(size, Expr(std::ldexp(1.0, shift)));
    const Expr part = Halide::floor(strict_mul(rest, strict_mul(inverse, Expr(std::ldexp(1.0, -shift)))));
    rest = strict_sub(rest, strict_mul(part, step));
  }
  rest = select(strict_less(rest, Expr(0.0)), strict_add(rest, size), rest);
  return select(strict_less(rest, size), rest, strict_sub(rest, size));
}

}  // namespace

Expr math_fmod(const Expr& x, const Expr& y) {
  const bool is_double = x.type().bits() == 64;
  if (is_double || DeviceMath::is_used())
    return Call::make(x.type(), is_double ? "fmod" : "fmodf", {x, y}, Call::PureExtern);
  const Expr is_zero = strict_equal(y, Expr(0.0F));
  const Expr size = select(is_zero, Expr(1.0F), Halide::abs(y));  // Halide refuses a constant zero
  const Expr rest = cast<float>(rest_of(x, cast<double>(size)));
  const Expr sign =
      Halide::reinterpret<std::uint32_t>(x) & Halide::Internal::make_const(Halide::UInt(32), 0x80000000U);
  const Expr with_sign = Halide::reinterpret<float>(Halide::reinterpret<std::uint32_t>(rest) | sign);
  const Expr is_none = is_not_a_number(y) || is_not_a_number(x) || is_infinity(x) || is_zero;
  return select(is_none, Expr(std::numeric_limits<float>::quiet_NaN()), select(is_infinity(y), x, with_sign));
}

}  // namespace sylvite
