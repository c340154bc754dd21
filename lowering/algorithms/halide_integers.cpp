#include "lowering/algorithms/halide_integers.h"

#include <map>

#include "lowering/algorithms/halide_math.h"

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Internal::ConstantInterval;

ConstantInterval bounds_of(const Expr& x) {
  std::map<Expr, ConstantInterval, Halide::ExprCompare> known;
  return Halide::Internal::constant_integer_bounds(
      x, Halide::Internal::Scope<ConstantInterval>::empty_scope(), &known);
}

/// a OPERATION b. What comes of coordinates alone stays as it is, so that Halide sees which elements are read.
template <typename Operation>
Expr wrapped(const Expr& a, const Expr& b, Operation operation) {
  const Halide::Type type = a.type();
  if (!type.is_int() || type.bits() < 32 || type.can_represent(operation(bounds_of(a), bounds_of(b))))
    return operation(a, b);
  const Halide::Type bits = Halide::UInt(type.bits());
  return Halide::reinterpret(type, operation(Halide::reinterpret(bits, a), Halide::reinterpret(bits, b)));
}

}  // namespace

Expr wrapped_add(const Expr& a, const Expr& b) {
  return a.type().is_float() ? strict_add(a, b)
                             : wrapped(a, b, [](const auto& x, const auto& y) { return x + y; });
}
Expr wrapped_sub(const Expr& a, const Expr& b) {
  return a.type().is_float() ? strict_sub(a, b)
                             : wrapped(a, b, [](const auto& x, const auto& y) { return x - y; });
}
Expr wrapped_mul(const Expr& a, const Expr& b) {
  return a.type().is_float() ? strict_mul(a, b)
                             : wrapped(a, b, [](const auto& x, const auto& y) { return x * y; });
}

Expr wrapped_negative(const Expr& x) {
  return wrapped_sub(constant_like(x, 0), x);
}

Expr wrapped_shift(const Expr& x, const Expr& amount) {
  if (!x.type().is_int()) return x << amount;
  return Halide::reinterpret(x.type(), Halide::reinterpret(Halide::UInt(x.type().bits()), x) << amount);
}

Expr wrapped_power(const Expr& a, const Expr& b) {
  Expr result = constant_like(a, 1);
  Expr power = a;
  for (int bit = 0; bit < 6; ++bit) {
    result = select(((b >> bit) & 1) != 0, wrapped_mul(result, power), result);
    power = wrapped_mul(power, power);
  }
  if (b.type().is_uint()) return result;
  const Expr inverse =
      select(a == 1, constant_like(a, 1),
             select(a == constant_like(a, -1),
                    select((b & 1) != 0, constant_like(a, -1), constant_like(a, 1)), constant_like(a, 0)));
  return select(b < 0, inverse, result);
}

}  // namespace sylvite
