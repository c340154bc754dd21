#include <cmath>
#include <numbers>

#include "base/error.h"
#include "lowering/algorithms/algorithm_nodes.h"
#include "lowering/algorithms/coarse_math.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"

// Pointwise operations on elements. Float arithmetic is strict (see halide_math.h), so that infinities and
// NaN pass.

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::select;

Expr constant(const Expr& like, double value) {
  return Halide::Internal::make_const(like.type(), value);
}

Expr negate(const Expr& x) {
  if (!x.type().is_float()) return -x;
  const Halide::Type bits = Halide::UInt(x.type().bits());
  const Expr sign = Halide::Internal::make_const(bits, 1) << (x.type().bits() - 1);
  return Halide::reinterpret(x.type(), Halide::reinterpret(bits, x) ^ sign);
}

Expr absolute(const Expr& x) {
  if (x.type().is_uint()) return x;
  if (!x.type().is_float()) return select(x < 0, -x, x);
  const Halide::Type bits = Halide::UInt(x.type().bits());
  return Halide::reinterpret(x.type(), Halide::reinterpret(bits, x) & (bits.max() >> 1));
}

Expr sign(const Expr& x) {
  const Expr zero = constant(x, 0);
  if (x.type().is_uint()) return select(x > zero, constant(x, 1), zero);
  const Expr value =
      select(strict_less(zero, x), constant(x, 1), strict_less(x, zero), constant(x, -1), zero);
  return keep_nan(x, value);
}

/// a clamp that lets NaN through: each select is one instruction, the processor's max or min.
Expr clamp_between(const Expr& x, double low, double high) {
  const Expr raised = select(strict_less(x, constant(x, low)), constant(x, low), x);
  return select(strict_less(constant(x, high), raised), constant(x, high), raised);
}

Expr relu(const Expr& x) {
  return select(strict_less(x, constant(x, 0)), constant(x, 0), x);
}

Expr gelu(const Node& node, const Expr& x) {
  const Expr half = strict_mul(x, constant(x, 0.5));
  if (node.attributes.string("approximate") == "tanh") {
    const Expr cube = strict_mul(strict_mul(x, x), x);
    const Expr inner = strict_mul(strict_add(x, strict_mul(cube, constant(x, 0.044715))),
                                  constant(x, std::sqrt(2 / std::numbers::pi)));
    return strict_mul(half, strict_add(math_tanh(inner), constant(x, 1)));
  }
  return strict_mul(
      half, strict_add(math_erf(strict_mul(x, constant(x, std::numbers::sqrt2 / 2))), constant(x, 1)));
}

Expr hard_sigmoid(const Expr& x, double alpha, double beta) {
  return clamp_between(strict_add(strict_mul(x, constant(x, alpha)), constant(x, beta)), 0, 1);
}

Expr is_infinite(const Node& node, const Expr& x) {
  const Expr zero = constant(x, 0);
  Expr result = Halide::Internal::const_false();
  if (node.attributes.integer("detect_positive") != 0) result = result || strict_less(zero, x);
  if (node.attributes.integer("detect_negative") != 0) result = result || strict_less(x, zero);
  return is_infinity(x) && result;
}

/// Float to integer: truncates; beyond the range the nearest, and 0 for NaN.
Expr saturate(const Expr& x, const Halide::Type& type) {
  const double low = type.is_uint() ? 0 : -std::ldexp(1.0, type.bits() - 1);
  const double beyond = std::ldexp(1.0, type.is_uint() ? type.bits() : type.bits() - 1);
  // Small types through i32, which is what the machine converts to.
  const Expr inside = type.bits() < 32 ? cast(type, cast<std::int32_t>(x)) : cast(type, x);
  const Expr value = select(strict_less(x, constant(x, low)), type.min(), strict_less(x, constant(x, beyond)),
                            inside, type.max());
  return select(is_not_a_number(x), Halide::Internal::make_zero(type), value);
}

Expr to_float(const Expr& x) {
  return x.type().is_float() ? convert_float(x, Halide::Float(32)) : cast<float>(x);
}

Expr convert(const Expr& x, DType from, DType to) {
  const Halide::Type type = compute_type_of(to);
  if (to == from) return x;
  if (to == DType::boolean) return !strict_equal(x, constant(x, 0));
  if (to == DType::bf16) return to_storage(to_float(x), to);  // what reads it widens it
  if (to == DType::f16 || is_narrow_float(to)) return from_storage(to_storage(to_float(x), to), to);
  if (is_narrow(to))
    return to_storage(x.type().is_float() ? saturate(x, Halide::Int(64)) : cast<std::int64_t>(x), to);
  if (x.type().is_float() && type.is_float()) return convert_float(x, type);
  if (!x.type().is_float() || type.is_float()) return cast(type, x);
  return saturate(x, type);
}

/// Through the stored forms, which are the bits; a boolean has only 0 and 1.
Expr reinterpret_bits(const Expr& x, DType from, DType to) {
  const Halide::Type bits = Halide::UInt(Halide::Type(halide_type_of(to)).bits());
  const Expr stored = Halide::reinterpret(bits, to_storage(x, from));
  if (is_narrow(to) && !is_narrow_float(to)) return to_storage(stored, to);
  const Expr masked =
      dtype_bits(to) < 8 ? stored & Halide::cast<std::uint8_t>((1 << dtype_bits(to)) - 1) : stored;
  return from_storage(Halide::reinterpret(Halide::Type(halide_type_of(to)), masked), to);
}

Expr round_half_even(const Expr& x) {
  return x.type().is_float() ? Halide::round(x) : x;
}

/// Do eight bits of the result count? GPUs have functions of their own.
bool is_coarse(const Expr& x, DType to) {
  return to == DType::bf16 && x.type().bits() == 32 && !DeviceMath::is_used();
}

Expr unary(const Node& node, const Expr& x, DType from, DType to) {
  const bool is_float = x.type().is_float();
  switch (node.op) {
    case Op::neg:
      return negate(x);
    case Op::abs:
      return absolute(x);
    case Op::sign:
      return sign(x);
    case Op::floor:
      return is_float ? Halide::floor(x) : x;
    case Op::ceil:
      return is_float ? Halide::ceil(x) : x;
    case Op::round:
      return round_half_even(x);
    case Op::sqrt:
      return math_sqrt(x);
    case Op::rsqrt:
      return math_rsqrt(x);
    case Op::reciprocal:
      return strict_div(constant(x, 1), x);
    case Op::exp:
      return math_exp(x);
    case Op::log:
      return math_log(x);
    case Op::sin:
      return math_sin(x);
    case Op::cos:
      return math_cos(x);
    case Op::tan:
      return math_tan(x);
    case Op::asin:
      return math_asin(x);
    case Op::acos:
      return math_acos(x);
    case Op::atan:
      return math_atan(x);
    case Op::sinh:
      return math_sinh(x);
    case Op::cosh:
      return math_cosh(x);
    case Op::tanh:
      return math_tanh(x);
    case Op::asinh:
      return math_asinh(x);
    case Op::acosh:
      return math_acosh(x);
    case Op::atanh:
      return math_atanh(x);
    case Op::erf:
      return math_erf(x);
    case Op::sigmoid:
      return math_sigmoid(x);
    case Op::relu:
      return relu(x);
    case Op::gelu:
      return is_coarse(x, to) ? coarse_gelu(x, node.attributes.string("approximate") == "tanh")
                              : gelu(node, x);
    case Op::silu:
      return is_coarse(x, to) ? coarse_silu(x) : math_silu(x);
    case Op::hard_sigmoid:
      return hard_sigmoid(x, node.attributes.real("alpha"), node.attributes.real("beta"));
    case Op::hard_swish:
      return strict_mul(x, hard_sigmoid(x, 1.0 / 6, 0.5));
    case Op::softplus:
      return math_softplus(x);
    case Op::logical_not:
      return !x;
    case Op::bitwise_not:
      return ~x;
    case Op::is_nan:
      return is_not_a_number(x);
    case Op::is_inf:
      return is_infinite(node, x);
    case Op::cast:
      return convert(x, from, to);
    case Op::bitcast:
      return reinterpret_bits(x, from, to);
    default:
      throw UnsupportedError("pointwise operation {} has no Halide algorithm", op_info(node.op).name);
  }
}

/// Toward zero, as C; division by zero gives 0 instead of a trap.
Expr truncated_div(const Expr& a, const Expr& b) {
  if (a.type().is_uint()) return a / b;
  const Expr size = Halide::div_round_to_zero(a, select(b == 0, constant(b, 1), b));
  return select(b == 0, constant(a, 0), size);
}

Expr modulo(const Expr& a, const Expr& b, bool sign_of_dividend) {
  if (!a.type().is_float()) {
    const Expr divisor = select(b == 0, constant(b, 1), b);
    if (a.type().is_uint()) return a % divisor;
    const Expr rest = Halide::mod_round_to_zero(a, divisor);
    return sign_of_dividend ? rest : select(rest != 0 && (rest < 0) != (divisor < 0), rest + divisor, rest);
  }
  const std::string function = a.type().bits() == 64 ? "fmod" : "fmodf";
  const Expr rest =
      Halide::Internal::Call::make(a.type(), function, {a, b}, Halide::Internal::Call::PureExtern);
  if (sign_of_dividend) return rest;
  const Expr zero = constant(a, 0);
  const Expr other_sign = strict_less(rest, zero) != strict_less(b, zero);
  return select(!strict_equal(rest, zero) && other_sign, strict_add(rest, b), rest);
}

/// Exponentiation by squaring, wrapping; a negative exponent gives 0, or +-1 for bases +-1.
Expr integer_pow(const Expr& a, const Expr& b) {
  Expr result = constant(a, 1);
  Expr power = a;
  for (int bit = 0; bit < 6; ++bit) {
    result = select(((b >> bit) & 1) != 0, result * power, result);
    power = power * power;
  }
  if (b.type().is_uint()) return result;
  const Expr inverse = select(
      a == 1, constant(a, 1),
      select(a == constant(a, -1), select((b & 1) != 0, constant(a, -1), constant(a, 1)), constant(a, 0)));
  return select(b < 0, inverse, result);
}

/// Common constant exponents are multiplications; libm's pow costs 20 times as much.
Expr power(const Expr& a, const Expr& b) {
  if (!a.type().is_float()) {
    return b.type().is_float() ? cast(a.type(), math_pow(cast<double>(a), cast<double>(b)))
                               : integer_pow(a, cast(a.type(), b));
  }
  if (const auto exponent = Halide::Internal::as_const_float(b)) {
    if (*exponent == 2) return strict_mul(a, a);
    if (*exponent == 3) return strict_mul(strict_mul(a, a), a);
    if (*exponent == 1) return a;
    if (*exponent == -1) return strict_div(constant(a, 1), a);
  }
  return math_pow(a, cast(a.type(), b));
}

Expr shift(const Expr& a, const Expr& b, bool left) {
  const Expr bits = constant(b, a.type().bits());
  const Expr amount = Halide::min(b, constant(b, a.type().bits() - 1));
  return select(b >= bits, constant(a, 0), left ? a << amount : a >> amount);
}

Expr binary(const Node& node, const Expr& a, const Expr& b) {
  switch (node.op) {
    case Op::add:
      return strict_add(a, b);
    case Op::sub:
      return strict_sub(a, b);
    case Op::mul:
      return strict_mul(a, b);
    case Op::div:
      return a.type().is_float() ? strict_div(a, b) : truncated_div(a, b);
    case Op::pow:
      return power(a, b);
    case Op::mod:
      return modulo(a, b, node.attributes.integer("fmod") != 0);
    case Op::minimum:
      return nan_min(a, b);
    case Op::maximum:
      return nan_max(a, b);
    case Op::equal:
      return strict_equal(a, b);
    case Op::less:
      return strict_less(a, b);
    case Op::less_equal:
      return strict_less_equal(a, b);
    case Op::greater:
      return strict_less(b, a);
    case Op::greater_equal:
      return strict_less_equal(b, a);
    case Op::logical_and:
      return a && b;
    case Op::logical_or:
      return a || b;
    case Op::logical_xor:
      return a != b;
    case Op::bitwise_and:
      return a & b;
    case Op::bitwise_or:
      return a | b;
    case Op::bitwise_xor:
      return a ^ b;
    case Op::shift_left:
      return shift(a, b, true);
    case Op::shift_right:
      return shift(a, b, false);
    default:
      throw UnsupportedError("pointwise operation {} has no Halide algorithm", op_info(node.op).name);
  }
}

}  // namespace

Expr pointwise_element(const Node& node, const std::vector<Expr>& operands, DType operand_dtype,
                       DType result_dtype) {
  switch (operands.size()) {
    case 1:
      return unary(node, operands[0], operand_dtype, result_dtype);
    case 2:
      return binary(node, operands[0], operands[1]);
    default:
      return select(operands[0], operands[1], operands[2]);
  }
}

void define_pointwise(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  builder.define(out, [&](const Coordinates& at) {
    std::vector<Expr> operands;
    for (const ValueId input : node.inputs) operands.push_back(builder.read_broadcast(input, at));
    return pointwise_element(node, operands, builder.type(node.inputs.front()).dtype,
                             builder.type(out).dtype);
  });
}

void define_iota(AlgorithmBuilder& builder, const Node& node) {
  const ValueId out = node.outputs.front();
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  builder.define(out, [&](const Coordinates& at) {
    return cast(compute_type_of(builder.type(out).dtype), at.at(axis).full);
  });
}

void define_batch_norm(AlgorithmBuilder& builder, const Node& node) {
  const double epsilon = node.attributes.real("epsilon");
  builder.define(node.outputs.front(), [&](const Coordinates& at) {
    const auto of_channel = [&](std::size_t input) { return builder.read(node.inputs[input], {at[1]}); };
    const Expr x = builder.read(node.inputs[0], at);
    const Expr root = math_sqrt(strict_add(of_channel(4), constant(x, epsilon)));
    return strict_add(strict_mul(strict_sub(x, of_channel(3)), strict_div(of_channel(1), root)),
                      of_channel(2));
  });
}

}  // namespace sylvite
