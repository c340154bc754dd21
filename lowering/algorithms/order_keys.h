#pragma once
// Numbers as integers with the same order.

#include <Halide.h>

namespace sylvite {

/// The stored bits of a BFloat(16) as a 16-bit integer with the same order, NaN above everything; and back.
[[nodiscard]] Halide::Expr bf16_order_key(const Halide::Expr& stored);
[[nodiscard]] Halide::Expr from_bf16_order_key(const Halide::Expr& key);

/// Float <-> signed integer of the same size with the same order, NaN above everything (`nan_is_largest`) or
/// below. Folding the integers by max or min is associative and vectorises, and NaN wins. Integers pass
/// through.
[[nodiscard]] Halide::Expr order_key(const Halide::Expr& x, bool nan_is_largest);
[[nodiscard]] Halide::Expr from_order_key(const Halide::Expr& key, const Halide::Type& type);

}  // namespace sylvite
