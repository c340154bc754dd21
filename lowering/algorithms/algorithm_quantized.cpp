#include <bit>
#include <limits>

#include "frontend/values/row_quantization.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/row_quantization.h"

// quantized_matmul, plain. Stages of v0: v0_extremes(s, d1...), keys of the largest (s = 0) and of the
// largest negated element of each row, and v0_fold, sums of products, with updates over r0 = k; v0_steps, the
// left operand in 8 bits.

namespace sylvite {
namespace {

using Halide::Expr;
using Halide::Func;
using Halide::Var;

Expr number(std::int32_t value) {
  return Halide::Internal::make_const(Halide::Int(32), value);
}
Expr bits_of(const Expr& x) {
  return Halide::reinterpret<std::int32_t>(x);
}
/// Added to a number of at most 2^22, it leaves the number, rounded to an integer, ties to even, in the low
/// bits.
constexpr float integer_rounder = 0x1.8p23F;

/// round(x) + offset, in arithmetic that may wrap: the sums of two such constants do not fit an i32.
Expr rounded_plus(const Expr& x, const Expr& offset) {
  const auto word_of = [](const Expr& value) { return Halide::reinterpret<std::uint32_t>(value); };
  const Expr bias =
      Halide::Internal::make_const(Halide::UInt(32), std::bit_cast<std::uint32_t>(integer_rounder));
  return Halide::reinterpret<std::int32_t>(word_of(strict_add(x, Expr(integer_rounder))) +
                                           (word_of(offset) - bias));
}

/// The f32 that a key of not less than 0 stands for.
Expr number_of_key(const Expr& key) {
  const Expr bits = Halide::cast<std::int32_t>(key);
  return Halide::reinterpret<float>(key.type().bits() == 16 ? bits << 16 : bits);
}

}  // namespace

Expr extreme_key(const Expr& x, const Expr& negated) {
  const int width = x.type().bits();
  const Halide::Type bits = Halide::UInt(width);  // in signed integers, foldings of the sign might overflow
  const Expr sign = Halide::Internal::make_const(bits, std::uint64_t{1} << (width - 1));
  const Expr turned =
      Halide::reinterpret(bits, x) ^ Halide::select(negated, sign, Halide::Internal::make_zero(bits));
  return Halide::reinterpret(Halide::Int(width), turned);
}

RowQuantization row_quantization(const Expr& high_key, const Expr& low_key) {
  const Expr low = number_of_key(low_key);
  const Expr range = strict_add(number_of_key(high_key), low);
  const Expr is_small = bits_of(range) <= number(std::bit_cast<std::int32_t>(smallest_range));
  const Expr is_finite =
      bits_of(range) < number(std::bit_cast<std::int32_t>(std::numeric_limits<float>::infinity()));
  const Expr is_usual = !is_small && is_finite;
  const Expr scale = strict_mul(range, Expr(1.0F / activation_levels));
  RowQuantization row;
  row.inverse = Halide::select(is_usual, strict_div(Expr(activation_levels), range), 0.0F);
  row.scale = Halide::select(is_finite, Halide::select(is_small, 0.0F, scale),
                             std::numeric_limits<float>::quiet_NaN());
  row.zero = Halide::select(is_usual, rounded_plus(strict_mul(low, row.inverse), 0), 0);
  return row;
}

Expr quantized_steps(const Expr& x, const RowQuantization& row) {
  // Of rows that are not finite the steps do not matter.
  const Expr steps = rounded_plus(strict_mul(x, row.inverse), row.zero);
  return Halide::cast<std::uint8_t>(Halide::min(steps, number(255)));
}

Expr magnitude_key(const Expr& x) {
  return bits_of(x) & number(0x7fffffff);
}

BlockQuantization block_quantization(const Expr& peak_key) {
  const Expr peak = Halide::reinterpret<float>(peak_key);
  const Expr is_small = peak_key <= number(std::bit_cast<std::int32_t>(smallest_range));
  const Expr is_finite =
      peak_key < number(std::bit_cast<std::int32_t>(std::numeric_limits<float>::infinity()));
  return {Halide::select(is_small || !is_finite, 0.0F, strict_div(Expr(block_levels), peak)),
          Halide::select(is_finite, strict_mul(peak, Expr(1.0F / block_levels)),
                         std::numeric_limits<float>::quiet_NaN())};
}

Expr signed_steps(const Expr& x, const Expr& inverse) {
  return Halide::cast<std::int8_t>(rounded_plus(strict_mul(x, inverse), 0));
}

Expr dequantized_sum(const Expr& sum, const RowQuantization& row, const Expr& column_scale,
                     const Expr& column_sum) {
  return strict_mul(strict_mul(Halide::cast<float>(sum - row.zero * column_sum), row.scale), column_scale);
}

void define_quantized_matmul(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const TensorType& type = builder.type(out);
  const std::vector<Var> vars = AlgorithmBuilder::vars_of(type);
  const Coordinates at = AlgorithmBuilder::coordinates_of(type);
  const std::int64_t depth = builder.type(node.inputs[0]).dims().back();
  const auto a_at = [&](const Expr& k) {
    Coordinates place = at;
    place.back() = Coordinate(k);
    return builder.read(node.inputs[0], place);  // as f32
  };
  const auto with_first = [&](const Expr& first) {
    std::vector<Expr> arguments(vars.begin(), vars.end());
    arguments[0] = first;
    return arguments;
  };
  const std::string& name = builder.name(out);
  const Halide::RDom k = reduction_domain({depth});
  Func extremes = builder.stage(name + "_extremes");
  const Var s("s");
  std::vector<Var> sides = vars;
  sides[0] = s;
  extremes(sides) = number(0);
  extremes(sides) = Halide::max(extremes(sides), extreme_key(a_at(k[0]), s == 1));
  const RowQuantization row = row_quantization(extremes(with_first(0)), extremes(with_first(1)));
  Func steps = builder.stage(name + "_steps");
  steps(vars) = quantized_steps(a_at(vars[0]), row);
  const Expr right = builder.read(node.inputs[1], {Coordinate(k[0]), at.back()});
  Func fold = builder.stage(name + "_fold");
  fold(vars) = number(0);
  fold(vars) += Halide::cast<std::int32_t>(steps(with_first(k[0]))) * Halide::cast<std::int32_t>(right);
  builder.define(out, [&](const Coordinates&) {
    return dequantized_sum(fold(vars), row, builder.read(node.inputs[2], {at.back()}),
                           builder.read(node.inputs[3], {at.back()}));
  });
}

}  // namespace sylvite
