#include "lowering/algorithms/order_keys.h"

#include <limits>

#include "lowering/algorithms/halide_math.h"

namespace sylvite {

using Halide::Expr;
using Halide::select;

Expr bf16_order_key(const Expr& stored) {
  const Halide::Type type = Halide::Int(16);
  const Expr bits = Halide::reinterpret(type, stored);
  const Expr largest = type.max();
  const Expr infinity = Halide::Internal::make_const(type, 0x7f80);
  return select((bits & largest) > infinity, largest, bits ^ ((bits >> 15) & largest));
}

Expr from_bf16_order_key(const Expr& key) {
  return Halide::reinterpret(Halide::BFloat(16), key ^ ((key >> 15) & Halide::Int(16).max()));
}

Expr order_key(const Expr& x, bool nan_is_largest) {
  if (!x.type().is_float()) return x;
  const int bits = x.type().bits();
  const Halide::Type type = Halide::Int(bits);
  const Expr word = Halide::reinterpret(type, x);
  const Expr ordered = word ^ ((word >> (bits - 1)) & type.max());
  return select(is_not_a_number(x), nan_is_largest ? type.max() : type.min(), ordered);
}

Expr from_order_key(const Expr& key, const Halide::Type& type) {
  if (!type.is_float()) return key;
  const Halide::Type integer = Halide::Int(type.bits());
  const Expr value = Halide::reinterpret(type, key ^ ((key >> (type.bits() - 1)) & integer.max()));
  const Expr is_nan = key == integer.max() || key == integer.min();
  return select(is_nan, Halide::Internal::make_const(type, std::numeric_limits<double>::quiet_NaN()), value);
}

}  // namespace sylvite
