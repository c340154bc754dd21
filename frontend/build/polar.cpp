#include "frontend/build/polar.h"

#include <numbers>

namespace sylvite {
namespace {

/// Below 0, or the zero that has a sign.
Sym has_sign(Sym x) {
  const Sym is_zero = apply(Op::equal, x, 0.0);
  return apply(Op::less, where(is_zero, apply(Op::reciprocal, x), x), 0.0);
}

}  // namespace

Sym hypotenuse(Sym x, Sym y) {
  const Sym a = apply(Op::abs, x), b = apply(Op::abs, y);
  const Sym large = apply(Op::maximum, a, b);
  const Sym ratio = apply(Op::minimum, a, b) / large;
  const Sym is_plain = apply(Op::logical_and, apply(Op::greater, large, 0.0),
                             apply(Op::logical_not, apply(Op::is_inf, large)));
  return where(is_plain, large * apply(Op::sqrt, ratio * ratio + 1.0), large);
}

Sym angle_of(Sym x, Sym y) {
  const Sym height = apply(Op::abs, y), width = apply(Op::abs, x);
  const Sym larger = apply(Op::maximum, height, width);
  const Sym has_ratio =
      apply(Op::logical_not, apply(Op::equal, height, width));  // not 0/0, nor that of infinities
  const Sym equal = where(apply(Op::equal, larger, 0.0), 0.0, larger / larger);
  const Sym one = where(apply(Op::is_inf, larger), 1.0, equal);
  const Sym ratio = where(has_ratio, apply(Op::minimum, height, width) / larger, one);
  Sym angle = apply(Op::atan, ratio);
  angle = where(apply(Op::greater, height, width), std::numbers::pi / 2 - angle, angle);
  angle = where(has_sign(x), std::numbers::pi - angle, angle);
  return where(has_sign(y), -angle, angle);
}

}  // namespace sylvite
