#include "lowering/algorithms/pointwise_bodies.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "frontend/ops/philox.h"
#include "lowering/algorithms/coarse_math.h"
#include "lowering/algorithms/halide_comparisons.h"
#include "lowering/algorithms/halide_integers.h"
#include "lowering/algorithms/halide_math.h"
#include "lowering/algorithms/halide_types.h"

// Float arithmetic is strict (see halide_math.h), so that infinities and NaN pass.

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::select;

Expr negate(const Expr& x) {
  if (!x.type().is_float()) return wrapped_negative(x);
  const Halide::Type bits = Halide::UInt(x.type().bits());
  const Expr sign = Halide::Internal::make_const(bits, 1) << (x.type().bits() - 1);
  return Halide::reinterpret(x.type(), Halide::reinterpret(bits, x) ^ sign);
}

Expr absolute(const Expr& x) {
  if (x.type().is_uint()) return x;
  if (!x.type().is_float()) return select(x < 0, wrapped_negative(x), x);
  const Halide::Type bits = Halide::UInt(x.type().bits());
  return Halide::reinterpret(x.type(), Halide::reinterpret(bits, x) & (bits.max() >> 1));
}

Expr sign(const Expr& x) {
  const Expr zero = constant_like(x, 0);
  if (x.type().is_uint()) return select(x > zero, constant_like(x, 1), zero);
  const Expr value =
      select(strict_less(zero, x), constant_like(x, 1), strict_less(x, zero), constant_like(x, -1), zero);
  return keep_nan(x, value);
}

/// a clamp that lets NaN through: each select is one instruction, the processor's max or min.
Expr clamp_between(const Expr& x, double low, double high) {
  const Expr raised = select(strict_less(x, constant_like(x, low)), constant_like(x, low), x);
  return select(strict_less(constant_like(x, high), raised), constant_like(x, high), raised);
}

Expr relu(const Expr& x) {
  return select(strict_less(x, constant_like(x, 0)), constant_like(x, 0), x);
}

Expr gelu(const Expr& x, bool by_tanh, Expr (*tanh)(const Expr&)) {
  const Expr half = strict_mul(x, constant_like(x, 0.5));
  if (by_tanh) {
    const Expr cube = strict_mul(strict_mul(x, x), x);
    const Expr inner = strict_mul(strict_add(x, strict_mul(cube, constant_like(x, 0.044715))),
                                  constant_like(x, std::sqrt(2 / std::numbers::pi)));
    return strict_mul(half, strict_add(tanh(inner), constant_like(x, 1)));
  }
  return strict_mul(half, strict_add(math_erf(strict_mul(x, constant_like(x, std::numbers::sqrt2 / 2))),
                                     constant_like(x, 1)));
}

Expr hard_sigmoid(const Expr& x, double alpha, double beta) {
  return clamp_between(strict_add(strict_mul(x, constant_like(x, alpha)), constant_like(x, beta)), 0, 1);
}

Expr is_infinite(const Node& node, const Expr& x) {
  const Expr zero = constant_like(x, 0);
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
  const Expr value = select(strict_less(x, constant_like(x, low)), type.min(),
                            strict_less(x, constant_like(x, beyond)), inside, type.max());
  return select(is_not_a_number(x), Halide::Internal::make_zero(type), value);
}

Expr to_float(const Expr& x) {
  return x.type().is_float() ? convert_float(x, Halide::Float(32)) : cast<float>(x);
}

constexpr float rounder = 12582912.0F;  // 1.5 2^23: a sum with it has no place for a fraction
constexpr int rounder_bits = 0x4b400000;

/// A number of 16 bits or fewer as f32, by its bits: Halide knows no limits of that. It would know those of a cast, and
/// follow them through all that is made of it, which takes time without end for a polynomial.
Expr small_float(const Expr& x) {
  return strict_sub(Halide::reinterpret<float>(cast<int>(x) + rounder_bits), Expr(rounder));
}

/// The same bits. Halide knows the range of what was shifted in 64 bits where it drops an index's clamp, but
/// not where it asks what is read; of the first bit, turned twice, it knows nothing.
Expr opaque_signed(const Expr& x) {
  const Halide::Type type = Halide::Int(64);
  const std::uint64_t first = std::uint64_t{1} << 63;
  return cast(type, x ^ Halide::Internal::make_const(x.type(), first)) ^
         Halide::Internal::make_const(type, std::numeric_limits<std::int64_t>::min());
}

Expr convert(const Expr& x, DType from, DType to) {
  const Halide::Type type = compute_type_of(to);
  if (to == from) return x;
  if (to == DType::boolean) return !is_equal(x, constant_like(x, 0));
  if (to == DType::bf16) return to_storage(to_float(x), to);  // what reads it widens it
  if (to == DType::f16 || is_narrow_float(to)) return from_storage(to_storage(to_float(x), to), to);
  if (is_narrow(to))
    return to_storage(x.type().is_float() ? saturate(x, Halide::Int(64)) : cast<std::int64_t>(x), to);
  if (x.type().is_float() && type.is_float()) return convert_float(x, type);
  if (to == DType::f32 && x.type().bits() > 1 && x.type().bits() <= 16) return small_float(x);
  if (x.type() == Halide::UInt(64) && type == Halide::Int(64)) return opaque_signed(x);
  if (!x.type().is_float() || type.is_float()) return cast(type, x);
  return saturate(x, type);
}

Expr converted(const PointwiseOperands& o) {
  return o.node.attributes.integer("rounds") == 0 ? to_float(o.x[0]) : convert(o.x[0], o.from, o.to);
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
bool is_coarse(const PointwiseOperands& o) {
  return o.to == DType::bf16 && o.x[0].type().bits() == 32 && !DeviceMath::is_used();
}

bool is_by_tanh(const Node& gelu) {
  return gelu.attributes.string("approximate") == "tanh";
}

Expr rounded_down(const Expr& x) {
  return x.type().is_float() ? Halide::floor(x) : x;
}

Expr rounded_up(const Expr& x) {
  return x.type().is_float() ? Halide::ceil(x) : x;
}

/// Toward zero, as C; division by zero gives 0 instead of a trap.
Expr truncated_div(const Expr& a, const Expr& b) {
  if (a.type().is_uint()) return a / b;
  const Expr size = Halide::div_round_to_zero(a, select(b == 0, constant_like(b, 1), b));
  return select(b == 0, constant_like(a, 0), size);
}

/// Is it a number of 16 bits that a GPU makes of f32? Its special functions are exact enough.
bool is_narrow_on_device(const PointwiseOperands& o) {
  return (o.to == DType::bf16 || o.to == DType::f16) && o.x[0].type().bits() == 32 && DeviceMath::is_used();
}

/// On a GPU a result of 16 bits is a product by the inverse, which elements that one thread divides by the same number share:
/// a division is some ten instructions there. Divisors below 2^-128 have no inverse, and give infinity.
Expr divide(const PointwiseOperands& o) {
  const Expr &a = o.x[0], &b = o.x[1];
  if (!a.type().is_float()) return truncated_div(a, b);
  if (!is_narrow_on_device(o)) return strict_div(a, b);
  return strict_mul(a, strict_div(constant_like(b, 1), b));
}

Expr modulo(const Expr& a, const Expr& b, bool sign_of_dividend) {
  if (!a.type().is_float()) {
    const Expr divisor = select(b == 0, constant_like(b, 1), b);
    if (a.type().is_uint()) return a % divisor;
    const Expr rest = Halide::mod_round_to_zero(a, divisor);
    return sign_of_dividend ? rest : select(rest != 0 && (rest < 0) != (divisor < 0), rest + divisor, rest);
  }
  const Expr rest = math_fmod(a, b);
  if (sign_of_dividend) return rest;
  const Expr zero = constant_like(a, 0);
  const Expr other_sign = strict_less(rest, zero) != strict_less(b, zero);
  return select(!strict_equal(rest, zero) && other_sign, strict_add(rest, b), rest);
}

/// Common constant exponents are multiplications.
Expr power(const Expr& a, const Expr& b) {
  if (!a.type().is_float()) {
    return b.type().is_float() ? cast(a.type(), math_pow(cast<double>(a), cast<double>(b)))
                               : wrapped_power(a, cast(a.type(), b));
  }
  if (const auto exponent = Halide::Internal::as_const_float(b)) {
    if (*exponent == 2) return strict_mul(a, a);
    if (*exponent == 3) return strict_mul(strict_mul(a, a), a);
    if (*exponent == 1) return a;
    if (*exponent == -1) return strict_div(constant_like(a, 1), a);
  }
  return math_pow(a, cast(a.type(), b));
}

Expr shift(const Expr& a, const Expr& b, bool left) {
  const Expr bits = constant_like(b, a.type().bits());
  const Expr most = constant_like(b, a.type().bits() - 1);
  if (a.type().is_uint()) {
    const Expr amount = Halide::min(b, most);
    return select(b >= bits, constant_like(a, 0), left ? wrapped_shift(a, amount) : a >> amount);
  }
  const Expr amount = Halide::clamp(b, constant_like(b, 0), most);
  const Expr beyond = left ? constant_like(a, 0) : a >> most;  // as many bits of the sign
  return select(b < 0 || b >= bits, beyond, left ? wrapped_shift(a, amount) : a >> amount);
}

Expr low_word(const Expr& x) {
  return cast<std::uint32_t>(x);
}

/// Of the number as i64.
Expr high_word(const Expr& x) {
  return cast<std::uint32_t>(x >> Halide::Internal::make_const(x.type(), x.type().bits() == 64 ? 32 : 31));
}

/// Word 0 of philox({index, stream, 0}, seed): see philox.h.
Expr philox_bits(const Expr& index, const Expr& seed, std::uint32_t stream) {
  std::array<Expr, 4> word = {low_word(index), high_word(index), Expr(stream), Expr(0U)};
  std::array<Expr, 2> key = {low_word(seed), high_word(seed)};
  for (int round = 0; round < philox_rounds; ++round) {
    const Expr first = cast<std::uint64_t>(word[0]) * Expr(std::uint64_t{philox_factors[0]});
    const Expr second = cast<std::uint64_t>(word[2]) * Expr(std::uint64_t{philox_factors[1]});
    word = {cast<std::uint32_t>(second >> 32) ^ word[1] ^ key[0], low_word(second),
            cast<std::uint32_t>(first >> 32) ^ word[3] ^ key[1], low_word(first)};
    for (std::size_t i = 0; i < key.size(); ++i) key[i] += Expr(philox_steps[i]);
  }
  return word[0];
}

using Operands = PointwiseOperands;

/// x / scale without a division for each element: what the product by the inverse leaves, which one fused operation gives
/// exactly, corrects it. What is beyond the range is cut off first, so that nothing overflows; NaN becomes the smallest.
/// Then a sum that has no place for a fraction rounds, half to even: its low bits are the integer, and 64. Were they the integer
/// alone, they would be stored as they are, which CUDA's assembler takes for a conversion of the float.
Expr quantized(const Operands& o) {
  constexpr float beyond = 64.0F;
  const Halide::Type to = halide_type_of(o.to);
  const Expr zero = o.x.size() > 2 ? cast<int>(o.x[2]) : Expr(0);
  const Expr scale = o.x[1];
  const Expr low = strict_mul(cast<float>(cast<int>(to.min()) - zero), scale);
  const Expr high = strict_mul(cast<float>(cast<int>(to.max()) - zero), scale);
  const Expr raised = select(strict_less(low, o.x[0]), o.x[0], low);
  const Expr x = select(strict_less(raised, high), raised, high);
  const Expr inverse = strict_div(Expr(1.0F), scale);
  const Expr guess = strict_mul(x, inverse);
  const Expr quotient = (x - guess * scale) * inverse + guess;
  const Expr sum = Halide::reinterpret<int>(strict_add(quotient, Expr(rounder + beyond)));
  return cast(to, sum - (rounder_bits + static_cast<int>(beyond) - zero));
}

// C text of operations whose attributes matter.

std::string gelu_text(const Node& node, bool fast) {
  return fmt::format("gelu{}{}({{0}})", is_by_tanh(node) ? "_tanh" : "", fast ? "_fast" : "");
}

std::string hard_sigmoid_text(const Node& node, bool) {
  return fmt::format("clamp01({{0}} * {} + {})", c_literal(node.attributes.real("alpha")),
                     c_literal(node.attributes.real("beta")));
}

std::string mod_text(const Node& node, bool) {
  return node.attributes.integer("fmod") != 0 ? "fmodf({0}, {1})" : "floor_mod({0}, {1})";
}

std::string round_text(const Node& node, bool) {
  return node.inputs.size() == 1 ? "rintf({0})" : not_printed;
}

std::string cast_text(const Node& node, bool) {
  const std::string& to = node.attributes.string("to");
  if (to == "bool") return "{0} != 0.f";
  if (to == "f32" || node.attributes.integer("rounds") == 0) return "(float){0}";
  return fmt::format("round_{}({{0}})", to);
}

// Expressions that are functions of their operands alone.

template <Expr (*function)(const Expr&)>
Expr unary(const Operands& o) {
  return function(o.x[0]);
}

template <Expr (*function)(const Expr&, const Expr&)>
Expr binary(const Operands& o) {
  return function(o.x[0], o.x[1]);
}

template <Expr (*function)(const Expr&, const Expr&)>
Expr swapped(const Operands& o) {
  return function(o.x[1], o.x[0]);
}

constexpr PointwiseBody bodies[] = {
    {Op::neg, unary<negate>, "-{0}"},
    {Op::abs, unary<absolute>, "fabsf({0})"},
    {Op::sign, unary<sign>, "sign({0})"},
    {Op::floor, unary<rounded_down>, "floorf({0})"},
    {Op::ceil, unary<rounded_up>, "ceilf({0})"},
    {Op::round, [](const Operands& o) { return o.x.size() > 1 ? quantized(o) : round_half_even(o.x[0]); },
     nullptr, nullptr, round_text},
    {Op::sqrt, unary<math_sqrt>, "sqrtf({0})"},
    {Op::rsqrt, unary<math_rsqrt>, "1.f / sqrtf({0})", "rsqrtf({0})"},
    {Op::reciprocal, [](const Operands& o) { return strict_div(constant_like(o.x[0], 1), o.x[0]); },
     "1.f / {0}", "div_fast(1.f, {0})"},
    {Op::exp, unary<math_exp>, "expf({0})", "__expf({0})"},
    {Op::log, unary<math_log>, "logf({0})"},
    {Op::sin, unary<math_sin>, "sinf({0})", "sin_fast({0})"},
    {Op::cos, unary<math_cos>, "cosf({0})", "cos_fast({0})"},
    {Op::tan, unary<math_tan>, "tanf({0})"},
    {Op::asin, unary<math_asin>, "asinf({0})"},
    {Op::acos, unary<math_acos>, "acosf({0})"},
    {Op::atan, unary<math_atan>, "atanf({0})"},
    {Op::sinh, unary<math_sinh>, "sinhf({0})"},
    {Op::cosh, unary<math_cosh>, "coshf({0})"},
    {Op::tanh,
     [](const Operands& o) { return is_narrow_on_device(o) ? device_tanh(o.x[0]) : math_tanh(o.x[0]); },
     "tanhf({0})", "tanh_fast({0})"},
    {Op::asinh, unary<math_asinh>, "asinhf({0})"},
    {Op::acosh, unary<math_acosh>, "acoshf({0})"},
    {Op::atanh, unary<math_atanh>, "atanhf({0})"},
    {Op::erf, unary<math_erf>, "erff({0})", "erf_fast({0})"},
    {Op::sigmoid,
     [](const Operands& o) { return is_narrow_on_device(o) ? device_sigmoid(o.x[0]) : math_sigmoid(o.x[0]); },
     "sigmoid({0})", "sigmoid_fast({0})"},
    {Op::relu, unary<relu>, "relu({0})"},
    {Op::gelu,
     [](const Operands& o) {
       if (is_coarse(o)) return coarse_gelu(o.x[0], is_by_tanh(o.node));
       return gelu(o.x[0], is_by_tanh(o.node), is_narrow_on_device(o) ? device_tanh : math_tanh);
     },
     nullptr, nullptr, gelu_text},
    {Op::silu,
     [](const Operands& o) {
       if (is_narrow_on_device(o)) return strict_mul(o.x[0], device_sigmoid(o.x[0]));
       return is_coarse(o) ? coarse_silu(o.x[0]) : math_silu(o.x[0]);
     },
     "silu({0})", "silu_fast({0})"},
    {Op::hard_sigmoid,
     [](const Operands& o) {
       return hard_sigmoid(o.x[0], o.node.attributes.real("alpha"), o.node.attributes.real("beta"));
     },
     nullptr, nullptr, hard_sigmoid_text},
    {Op::hard_swish, [](const Operands& o) { return strict_mul(o.x[0], hard_sigmoid(o.x[0], 1.0 / 6, 0.5)); },
     "{0} * clamp01({0} * (1.f / 6.f) + 0.5f)"},
    {Op::softplus, unary<math_softplus>, "softplus({0})", "softplus_fast({0})"},
    {Op::logical_not, [](const Operands& o) { return !o.x[0]; }, "!{0}"},
    {Op::bitwise_not, [](const Operands& o) { return ~o.x[0]; }, not_printed},
    {Op::is_nan, unary<is_not_a_number>, "{0} != {0}"},
    {Op::is_inf, [](const Operands& o) { return is_infinite(o.node, o.x[0]); }, not_printed},
    {Op::cast, converted, nullptr, nullptr, cast_text},
    {Op::bitcast, [](const Operands& o) { return reinterpret_bits(o.x[0], o.from, o.to); }, not_printed},
    {Op::add, binary<wrapped_add>, "{0} + {1}"},
    {Op::sub, binary<wrapped_sub>, "{0} - {1}"},
    {Op::mul, binary<wrapped_mul>, "{0} * {1}"},
    {Op::div, divide, "{0} / {1}", "div_fast({0}, {1})"},
    {Op::pow, binary<power>, "powf({0}, {1})", "pow_fast({0}, {1})"},
    {Op::mod,
     [](const Operands& o) { return modulo(o.x[0], o.x[1], o.node.attributes.integer("fmod") != 0); },
     nullptr, nullptr, mod_text},
    {Op::minimum, binary<nan_min>, "nan_min({0}, {1})"},
    {Op::maximum, binary<nan_max>, "nan_max({0}, {1})"},
    {Op::equal, binary<is_equal>, "{0} == {1}"},
    {Op::less, binary<is_less>, "{0} < {1}"},
    {Op::less_equal, binary<is_at_most>, "{0} <= {1}"},
    {Op::greater, swapped<is_less>, "{0} > {1}"},
    {Op::greater_equal, swapped<is_at_most>, "{0} >= {1}"},
    {Op::logical_and, [](const Operands& o) { return o.x[0] && o.x[1]; }, "{0} && {1}"},
    {Op::logical_or, [](const Operands& o) { return o.x[0] || o.x[1]; }, "{0} || {1}"},
    {Op::logical_xor, [](const Operands& o) { return o.x[0] != o.x[1]; }, "{0} != {1}"},
    {Op::bitwise_and, [](const Operands& o) { return o.x[0] & o.x[1]; }, not_printed},
    {Op::bitwise_or, [](const Operands& o) { return o.x[0] | o.x[1]; }, not_printed},
    {Op::bitwise_xor, [](const Operands& o) { return o.x[0] ^ o.x[1]; }, not_printed},
    {Op::shift_left, [](const Operands& o) { return shift(o.x[0], o.x[1], true); }, not_printed},
    {Op::shift_right, [](const Operands& o) { return shift(o.x[0], o.x[1], false); }, not_printed},
    {Op::where, [](const Operands& o) { return select(o.x[0], o.x[1], o.x[2]); }, "{0} ? {1} : {2}"},
    {Op::random_bits,
     [](const Operands& o) {
       return philox_bits(o.x[0], o.x[1], static_cast<std::uint32_t>(o.node.attributes.integer("stream")));
     },
     not_printed},
};

}  // namespace

const PointwiseBody& pointwise_body(Op op) {
  const auto* found = std::ranges::find(bodies, op, &PointwiseBody::op);
  if (found == std::end(bodies))
    throw UnsupportedError("pointwise operation {} has no algorithm", op_info(op).name);
  return *found;
}

std::string c_literal(double value) {
  const auto single = static_cast<float>(value);
  if (single != single) return "(0.f / 0.f)";
  if (single - single != 0) return single > 0 ? "(1.f / 0.f)" : "(-1.f / 0.f)";
  return single < 0 ? fmt::format("({:a}f)", single) : fmt::format("{:a}f", single);
}

std::string c_text(const Node& node, std::vector<std::string> operands, bool fast) {
  const PointwiseBody& body = pointwise_body(node.op);
  const bool is_faster = fast && body.fast_text != nullptr;
  const std::string text = body.text_of != nullptr ? body.text_of(node, fast)
                                                   : std::string(is_faster ? body.fast_text : body.text);
  if (text.empty()) throw UnsupportedError("{} is not printed as C", op_info(node.op).name);
  operands.resize(3);
  return fmt::format(fmt::runtime(text), operands[0], operands[1], operands[2]);
}

}  // namespace sylvite
