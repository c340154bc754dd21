#include "lowering/algorithms/halide_comparisons.h"

#include <cmath>
#include <optional>

#include "lowering/algorithms/halide_math.h"

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Internal::Call;

/// What x is, where that is an infinite constant.
std::optional<double> infinite_constant(const Expr& x) {
  const auto value = Halide::Internal::as_const_float(x);
  return value && std::isinf(*value) ? value : std::nullopt;
}

/// Does the code generator know nothing of x?
bool is_opaque(const Expr& x) {
  const auto* call = x.as<Call>();
  return Halide::Internal::is_const(x) ||
         (call != nullptr && (call->call_type == Call::Image || call->is_strict_float_intrinsic()));
}

Expr is_infinite_as(const Expr& x, double sign) {
  const Expr zero = constant_like(x, 0);
  return is_infinity(x) && (sign < 0 ? strict_less(x, zero) : strict_less(zero, x));
}

}  // namespace

Expr is_equal(const Expr& a, const Expr& b) {
  if (!a.type().is_float()) return a == b;
  if (Halide::Internal::equal(a, b)) return !is_not_a_number(a);
  if (const auto number = infinite_constant(a)) return is_infinite_as(b, *number);
  if (const auto number = infinite_constant(b)) return is_infinite_as(a, *number);
  return strict_equal(a, b) && !is_not_a_number(a) && !is_not_a_number(b);
}

Expr is_less(const Expr& a, const Expr& b) {
  const bool is_bound = infinite_constant(a).value_or(0) < 0 || infinite_constant(b).value_or(0) > 0;
  if (!is_bound) return strict_less(a, b);
  return !is_not_a_number(a) && !is_not_a_number(b) && !is_equal(a, b);
}

Expr is_at_most(const Expr& a, const Expr& b) {
  if (is_opaque(a) && is_opaque(b)) return strict_less_equal(a, b);
  return is_less(a, b) || is_equal(a, b);
}

}  // namespace sylvite
