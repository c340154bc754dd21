// Arithmetic, comparisons, logic and functions of one number.

#include <cmath>

#include "frontend/build/polar.h"
#include "frontend/torch/promote.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

/// A function of floats; integers become the float of the result first.
template <Op op>
void function(TorchContext& c) {
  c.output(apply(op, c.operand("self", c.result_dtype())));
}

/// Floats become narrow integers by way of wide ones, whose low bits stay, as torch says for those without a sign.
Sym converted(Sym x, DType to) {
  const bool is_narrow = !is_float(to) && to != DType::boolean && dtype_size(to) < 4;
  if (is_narrow && is_float(x.dtype())) x = cast(x, x.dtype() == DType::f64 ? DType::i64 : DType::i32);
  return cast(x, to);
}

void convert(TorchContext& c) {
  for (const std::string_view name : {"layout", "device", "pin_memory", "non_blocking", "memory_format"})
    c.ignore(name);
  const Sym x =
      c.is_tensor("self") ? c.tensor("self") : c.operand("self", c.result_dtype());  // tracing leaves numbers
  c.output(converted(x, c.dtype("dtype", x.dtype())));
}

/// The same bits as another type, of as many.
void view_bits(TorchContext& c) {
  const Sym x = c.tensor("self");
  const DType to = c.dtype("dtype", x.dtype());
  if (dtype_bits(to) != dtype_bits(x.dtype()))
    throw UnsupportedError("elements of {} read as {} change their number, which is not served",
                           dtype_name(x.dtype()), dtype_name(to));
  c.output(to == x.dtype() ? x : x.builder().add(Op::bitcast, {x}, {{"to", std::string(dtype_name(to))}}));
}

/// Rounding leaves integers as they are.
template <Op op>
void rounding(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(is_float(x.dtype()) ? apply(op, x) : x);
}

template <Op op>
void numeric(TorchContext& c) {
  c.output(apply(op, c.tensor("self")));
}

/// Of what is no number torch's sign is zero.
void sign(TorchContext& c) {
  const Sym x = c.tensor("self");
  if (x.dtype() == DType::boolean) return c.output(x);
  const Sym found = apply(Op::sign, x);
  c.output(is_float(x.dtype()) ? where(apply(Op::is_nan, x), 0.0, found) : found);
}

/// For booleans a logical operation stands for the arithmetic one.
template <Op op, Op logical>
void arithmetic(TorchContext& c) {
  const DType dtype = c.result_dtype();
  TorchPair pair = pair_with_number(c, dtype);
  if (c.has("alpha")) {
    const DType of = pair.b.dtype();
    pair.b = of == DType::boolean
                 ? apply(Op::logical_and, pair.b, c.builder().scalar(of, c.flag("alpha") ? 1 : 0))
                 : pair.b * c.operand("alpha", of);
  }
  c.output(narrowed(apply(dtype == DType::boolean ? logical : op, pair.a, pair.b), dtype));
}

void multiply(TorchContext& c) {
  const DType dtype = c.result_dtype();
  const TorchPair pair = pair_of_factors(c, dtype);
  c.output(narrowed(apply(dtype == DType::boolean ? Op::logical_and : Op::mul, pair.a, pair.b), dtype));
}

/// other - alpha self
void subtract_from(TorchContext& c) {
  TorchPair pair = pair_with_number(c, c.result_dtype());
  if (c.has("alpha")) pair.a = pair.a * c.operand("alpha", pair.a.dtype());
  c.output(narrowed(pair.b - pair.a, c.result_dtype()));
}

Sym differ_in_sign(Sym a, Sym b) {
  return apply(Op::logical_xor, apply(Op::less, a, 0.0), apply(Op::less, b, 0.0));
}

/// Integers: what truncates toward zero is one too large where signs differ and something is left.
Sym floor_divide_integers(Sym a, Sym b) {
  const Sym quotient = a / b;
  const Sym rest = a - quotient * b;
  const Sym is_above =
      apply(Op::logical_and, apply(Op::logical_not, apply(Op::equal, rest, 0.0)), differ_in_sign(rest, b));
  return quotient - cast(is_above, a.dtype());
}

/// Floats: the quotient of what has no remainder, which a rounded a / b may miss by one.
Sym floor_divide_reals(Sym a, Sym b) {
  const Sym rest = a.builder().add(Op::mod, {a, b}, {{"fmod", std::int64_t{1}}});
  const Sym is_left = apply(Op::logical_not, apply(Op::equal, rest, 0.0));
  const Sym step = cast(apply(Op::logical_and, is_left, differ_in_sign(rest, b)), a.dtype());
  const Sym quotient = apply(Op::round, (a - rest) / b) - step;
  return where(apply(Op::equal, b, 0.0), a / b, quotient);
}

Sym truncated(Sym x) {
  return where(apply(Op::less, x, 0.0), apply(Op::ceil, x), apply(Op::floor, x));
}

void divide(TorchContext& c) {
  const DType dtype = c.result_dtype();
  const std::string mode = c.string("rounding_mode", "none");
  const TorchPair pair = pair_of_factors(c, dtype);
  if (mode == "floor")
    c.output(is_float(dtype) ? narrowed(floor_divide_reals(pair.a, pair.b), dtype)
                             : floor_divide_integers(pair.a, pair.b));
  else if (mode == "trunc")
    c.output(is_float(dtype) ? narrowed(truncated(pair.a / pair.b), dtype) : pair.a / pair.b);
  else if (mode == "none")
    c.output(narrowed(pair.a / pair.b, dtype));
  else
    throw UnsupportedError("rounding_mode '{}' is not served", mode);
}

template <int fmod>
void remainder(TorchContext& c) {
  const TorchPair pair = pair_as(c, c.result_dtype());
  c.output(c.builder().add(Op::mod, {pair.a, pair.b}, {{"fmod", std::int64_t{fmod}}}));
}

void power_of_scalar(TorchContext& c) {
  const DType dtype = c.result_dtype();
  const Sym x = c.operand("self", dtype);
  const double exponent = c.real("exponent");
  if (exponent == 1) return c.output(x);
  if (exponent == 2) return c.output(x * x);
  if (exponent == 3) return c.output(x * x * x);
  if (exponent == 0.5) return c.output(apply(Op::sqrt, x));
  if (exponent == -0.5) return c.output(apply(Op::rsqrt, x));
  if (exponent == -1 && is_float(dtype)) return c.output(apply(Op::reciprocal, x));
  c.output(apply(Op::pow, x, c.operand("exponent", dtype)));
}

void power(TorchContext& c) {
  const TorchPair pair = pair_as(c, c.result_dtype(), "self", "exponent");
  c.output(apply(Op::pow, pair.a, pair.b));
}

template <Op op>
void binary(TorchContext& c) {
  const TorchPair pair = pair_as(c, c.result_dtype());
  c.output(apply(op, pair.a, pair.b));
}

template <Op op, Op logical>
void bitwise(TorchContext& c) {
  const TorchPair pair = pair_as(c, c.result_dtype());
  c.output(apply(pair.a.dtype() == DType::boolean ? logical : op, pair.a, pair.b));
}

void bitwise_not(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(apply(x.dtype() == DType::boolean ? Op::logical_not : Op::bitwise_not, x));
}

/// Booleans are ordered as 0 and 1.
template <Op op>
void compare(TorchContext& c) {
  TorchPair pair = promoted_pair(c);
  if (op != Op::equal && pair.a.dtype() == DType::boolean)
    pair = {cast(pair.a, DType::u8), cast(pair.b, DType::u8)};
  c.output(apply(op, pair.a, pair.b));
}

void not_equal(TorchContext& c) {
  const TorchPair pair = promoted_pair(c);
  c.output(apply(Op::logical_not, apply(Op::equal, pair.a, pair.b)));
}

template <Op op>
void logical(TorchContext& c) {
  const TorchPair pair = pair_as(c, DType::boolean);
  c.output(apply(op, pair.a, pair.b));
}

void logical_not(TorchContext& c) {
  c.output(apply(Op::logical_not, c.operand("self", DType::boolean)));
}

template <Op op>
void classify(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(apply(op, is_float(x.dtype()) ? x : cast(x, DType::f32)));
}

void where_op(TorchContext& c) {
  const TorchPair pair = pair_as(c, c.result_dtype());
  c.output(where(cast(c.tensor("condition"), DType::boolean), pair.a, pair.b));
}

void clamp(TorchContext& c) {
  const DType dtype = c.result_dtype();
  Sym x = c.operand("self", dtype);
  if (c.has("min")) x = apply(Op::maximum, x, c.operand("min", dtype));
  if (c.has("max")) x = apply(Op::minimum, x, c.operand("max", dtype));
  c.output(x);
}

void clamp_min(TorchContext& c) {
  c.output(apply(Op::maximum, c.operand("self", c.result_dtype()), c.operand("min", c.result_dtype())));
}

void clamp_max(TorchContext& c) {
  c.output(apply(Op::minimum, c.operand("self", c.result_dtype()), c.operand("max", c.result_dtype())));
}

void hardtanh(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(apply(Op::minimum, apply(Op::maximum, x, c.real("min_val", -1)), c.real("max_val", 1)));
}

void gelu(TorchContext& c) {
  c.output(c.builder().add(Op::gelu, {c.tensor("self")}, {{"approximate", c.string("approximate", "none")}}));
}

void hard_sigmoid(TorchContext& c) {
  c.output(c.builder().add(Op::hard_sigmoid, {c.tensor("self")}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}));
}

/// Narrow floats are multiplied in f32, as torch does.
Sym wide_enough(Sym x) {
  return dtype_size(x.dtype()) < 4 ? cast(x, DType::f32) : x;
}

void leaky_relu(TorchContext& c) {
  const Sym x = wide_enough(c.tensor("self"));
  c.output(narrowed(where(apply(Op::less, x, 0.0), x * c.real("negative_slope", 0.01), x), c.result_dtype()));
}

/// e^x - 1, with all digits near 0.
Sym exp_less_one(Sym x) {
  return apply(Op::tanh, x * 0.5) * (apply(Op::exp, x) + 1.0);
}

void elu(TorchContext& c) {
  const Sym x = wide_enough(c.tensor("self"));
  const double scale = c.real("scale", 1);
  const Sym below =
      exp_less_one(apply(Op::minimum, x, 0.0) * c.real("input_scale", 1)) * (c.real("alpha", 1) * scale);
  c.output(narrowed(where(apply(Op::greater, x, 0.0), x * scale, below), c.result_dtype()));
}

void softplus(TorchContext& c) {
  const Sym x = c.tensor("self");
  const double beta = c.real("beta", 1);
  const Sym scaled = x * beta;
  c.output(where(apply(Op::greater, scaled, c.real("threshold", 20)), x, apply(Op::softplus, scaled) / beta));
}

void expm1(TorchContext& c) {
  const Sym x = c.operand("self", c.result_dtype());
  const Sym value = exp_less_one(x);
  c.output(where(apply(Op::greater, x, 30.0), apply(Op::exp, x), value));
}

/// log(1 + x), with all digits near 0: 2 atanh(x / (2 + x)) by its series.
void log1p(TorchContext& c) {
  const Sym x = c.operand("self", c.result_dtype());
  const Sym t = x / (x + 2.0);
  const Sym square = t * t;
  Sym sum = square * (1.0 / 15) + 1.0 / 13;
  for (int k = 11; k > 0; k -= 2) sum = sum * square + 1.0 / k;
  const Sym is_small = apply(Op::less, apply(Op::abs, x), 0.25);
  c.output(where(is_small, t * sum * 2.0, apply(Op::log, x + 1.0)));
}

/// Of x >= 0: exp(-x^2) P(u), where u is 1/(1 + 0.4 x) moved to [-1, 1] for x up to 27.3, beyond which the result is 0 even in
/// f64; our minimax fit of degree 20. The square is that of the upper digits of x, which is exact, and of what they lack.
Sym upper_erfc(Sym x) {
  constexpr double most = 27.3;
  constexpr double stretch = 2 / (1 - 1 / (1 + 0.4 * most));
  constexpr double coefficients[] = {
      6.1761778316535728e-10, 3.0923656490064457e-09,  -7.2357778255492315e-09, -2.5319593725555019e-08,
      6.5624350501714573e-08, 8.7117560678631209e-08,  -4.8806073645177785e-07, 7.4810314586265298e-08,
      3.1212041284391735e-06, -3.8666125439950408e-06, -1.9801990652597199e-05, 4.2740726901261216e-05,
      0.00015540143490113642, -0.00037511253782601792, -0.0018358747807140027,  0.0016405693858645664,
      0.029090547778283491,   0.10662219577593084,     0.23909356080065805,     0.38174710939607182,
      0.2438396987728344};
  const Sym inside = apply(Op::minimum, x, most);
  const Sym u = apply(Op::reciprocal, inside * 0.4 + 1.0) * stretch + (1 - stretch);
  Sym p = u * coefficients[0] + coefficients[1];
  for (std::size_t i = 2; i < std::size(coefficients); ++i) p = p * u + coefficients[i];
  const Sym upper = cast(cast(inside, x.dtype() == DType::f64 ? DType::f32 : DType::bf16), x.dtype());
  const Sym rest = apply(Op::exp, (upper - inside) * (upper + inside));
  return rest * p * apply(Op::exp, -(upper * upper));
}

/// 1 - erf(x), with all digits where that is near 0. Narrow floats are computed in f32.
void erfc(TorchContext& c) {
  const DType dtype = c.result_dtype();
  const Sym x = c.operand("self", dtype == DType::f64 ? dtype : DType::f32);
  const Sym upper = upper_erfc(apply(Op::abs, x));
  c.output(narrowed(where(apply(Op::less, x, 0.0), 2.0 - upper, upper), dtype));
}

void hypot(TorchContext& c) {
  const TorchPair pair = pair_as(c, c.result_dtype());
  c.output(hypotenuse(pair.a, pair.b));
}
void atan2(TorchContext& c) {
  const TorchPair pair = pair_as(c, c.result_dtype());
  c.output(angle_of(pair.b, pair.a));
}

/// log(2) has too few digits in 16 bits: those are computed in f32.
void exp2(TorchContext& c) {
  const DType dtype = c.result_dtype();
  const Sym x = c.operand("self", dtype == DType::f64 ? dtype : DType::f32);
  c.output(narrowed(apply(Op::exp, x * std::log(2.0)), dtype));
}
void log2(TorchContext& c) {
  c.output(apply(Op::log, c.operand("self", c.result_dtype())) * (1 / std::log(2.0)));
}
void log10(TorchContext& c) {
  c.output(apply(Op::log, c.operand("self", c.result_dtype())) * (1 / std::log(10.0)));
}

void trunc(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(is_float(x.dtype()) ? truncated(x) : x);
}

void addcmul(TorchContext& c) {
  const DType dtype = c.result_dtype();
  const Sym product = c.operand("tensor1", dtype) * c.operand("tensor2", dtype);
  c.output(c.operand("self", dtype) + (c.has("value") ? product * c.operand("value", dtype) : product));
}

void fused_product(TorchContext& c) {
  const DType dtype = c.result_dtype();
  c.output(c.operand("a", dtype) * c.operand("b", dtype) + c.operand("c", dtype));
}

void square(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(x * x);
}

void neg(TorchContext& c) {
  c.output(-c.tensor("self"));
}

constexpr std::string_view one = "self";
constexpr std::string_view two = "self other";
constexpr std::string_view two_scaled = "self other alpha";

const TorchOp pointwise_rows[] = {
    {"aten.__lshift__.Scalar", two, binary<Op::shift_left>},
    {"aten.__rshift__.Scalar", two, binary<Op::shift_right>},
    {"aten._to_copy.default", "self dtype layout device pin_memory non_blocking memory_format", convert},
    {"aten.abs.default", one, numeric<Op::abs>},
    {"aten.acos.default", one, function<Op::acos>},
    {"aten.acosh.default", one, function<Op::acosh>},
    {"aten.add.Scalar", two_scaled, arithmetic<Op::add, Op::logical_or>},
    {"aten.add.Tensor", two_scaled, arithmetic<Op::add, Op::logical_or>},
    {"aten.addcmul.default", "self tensor1 tensor2 value", addcmul},
    {"aten.asin.default", one, function<Op::asin>},
    {"aten.asinh.default", one, function<Op::asinh>},
    {"aten.atan.default", one, function<Op::atan>},
    {"aten.atan2.default", two, atan2},
    {"aten.atanh.default", one, function<Op::atanh>},
    {"aten.bitwise_and.Scalar", two, bitwise<Op::bitwise_and, Op::logical_and>},
    {"aten.bitwise_and.Tensor", two, bitwise<Op::bitwise_and, Op::logical_and>},
    {"aten.bitwise_left_shift.Tensor", two, binary<Op::shift_left>},
    {"aten.bitwise_not.default", one, bitwise_not},
    {"aten.bitwise_or.Scalar", two, bitwise<Op::bitwise_or, Op::logical_or>},
    {"aten.bitwise_or.Tensor", two, bitwise<Op::bitwise_or, Op::logical_or>},
    {"aten.bitwise_right_shift.Tensor", two, binary<Op::shift_right>},
    {"aten.bitwise_xor.Scalar", two, bitwise<Op::bitwise_xor, Op::logical_xor>},
    {"aten.bitwise_xor.Tensor", two, bitwise<Op::bitwise_xor, Op::logical_xor>},
    {"aten.ceil.default", one, rounding<Op::ceil>},
    {"aten.clamp.Tensor", "self min max", clamp},
    {"aten.clamp.default", "self min max", clamp},
    {"aten.clamp_max.default", "self max", clamp_max},
    {"aten.clamp_min.default", "self min", clamp_min},
    {"aten.cos.default", one, function<Op::cos>},
    {"aten.cosh.default", one, function<Op::cosh>},
    {"aten.div.Scalar", two, divide},
    {"aten.div.Scalar_mode", "self other rounding_mode", divide},
    {"aten.div.Tensor", two, divide},
    {"aten.div.Tensor_mode", "self other rounding_mode", divide},
    {"aten.elu.default", "self alpha scale input_scale", elu},
    {"aten.eq.Scalar", two, compare<Op::equal>},
    {"aten.eq.Tensor", two, compare<Op::equal>},
    {"aten.erf.default", one, function<Op::erf>},
    {"aten.erfc.default", one, erfc},
    {"aten.exp.default", one, function<Op::exp>},
    {"aten.exp2.default", one, exp2},
    {"aten.expm1.default", one, expm1},
    {"aten.floor.default", one, rounding<Op::floor>},
    {"aten.fmod.Scalar", two, remainder<1>},
    {"aten.fmod.Tensor", two, remainder<1>},
    {"aten.ge.Scalar", two, compare<Op::greater_equal>},
    {"aten.ge.Tensor", two, compare<Op::greater_equal>},
    {"aten.gelu.default", "self approximate", gelu},
    {"aten.gt.Scalar", two, compare<Op::greater>},
    {"aten.gt.Tensor", two, compare<Op::greater>},
    {"aten.hardsigmoid.default", one, hard_sigmoid},
    {"aten.hardswish.default", one, numeric<Op::hard_swish>},
    {"aten.hardtanh.default", "self min_val max_val", hardtanh},
    {"aten.hypot.default", two, hypot},
    {"aten.isinf.default", one, classify<Op::is_inf>},
    {"aten.isnan.default", one, classify<Op::is_nan>},
    {"aten.le.Scalar", two, compare<Op::less_equal>},
    {"aten.le.Tensor", two, compare<Op::less_equal>},
    {"aten.leaky_relu.default", "self negative_slope", leaky_relu},
    {"aten.log.default", one, function<Op::log>},
    {"aten.log10.default", one, log10},
    {"aten.log1p.default", one, log1p},
    {"aten.log2.default", one, log2},
    {"aten.logical_and.default", two, logical<Op::logical_and>},
    {"aten.logical_not.default", one, logical_not},
    {"aten.logical_or.default", two, logical<Op::logical_or>},
    {"aten.logical_xor.default", two, logical<Op::logical_xor>},
    {"aten.lt.Scalar", two, compare<Op::less>},
    {"aten.lt.Tensor", two, compare<Op::less>},
    {"aten.maximum.default", two, binary<Op::maximum>},
    {"aten.minimum.default", two, binary<Op::minimum>},
    {"aten.mul.Scalar", two, multiply},
    {"aten.mul.Tensor", two, multiply},
    {"aten.ne.Scalar", two, not_equal},
    {"aten.ne.Tensor", two, not_equal},
    {"aten.neg.default", one, neg},
    {"aten.pow.Scalar", "self exponent", power},
    {"aten.pow.Tensor_Scalar", "self exponent", power_of_scalar},
    {"aten.pow.Tensor_Tensor", "self exponent", power},
    {"aten.reciprocal.default", one, function<Op::reciprocal>},
    {"aten.relu.default", one, numeric<Op::relu>},
    {"aten.remainder.Scalar", two, remainder<0>},
    {"aten.remainder.Tensor", two, remainder<0>},
    {"aten.round.default", one, rounding<Op::round>},
    {"aten.rsqrt.default", one, function<Op::rsqrt>},
    {"aten.rsub.Scalar", two_scaled, subtract_from},
    {"aten.sigmoid.default", one, function<Op::sigmoid>},
    {"aten.sign.default", one, sign},
    {"aten.silu.default", one, numeric<Op::silu>},
    {"aten.sin.default", one, function<Op::sin>},
    {"aten.sinh.default", one, function<Op::sinh>},
    {"aten.softplus.default", "self beta threshold", softplus},
    {"aten.sqrt.default", one, function<Op::sqrt>},
    {"aten.square.default", one, square},
    {"aten.sub.Scalar", two_scaled, arithmetic<Op::sub, Op::logical_xor>},
    {"aten.sub.Tensor", two_scaled, arithmetic<Op::sub, Op::logical_xor>},
    {"aten.tan.default", one, function<Op::tan>},
    {"aten.tanh.default", one, function<Op::tanh>},
    {"aten.true_divide.Tensor", two, divide},
    {"aten.trunc.default", one, trunc},
    {"aten.view.dtype", "self dtype", view_bits},
    {"aten.where.self", "condition self other", where_op},
    {"prims.convert_element_type.default", "self dtype", convert},
    {"prims.fma.default", "a b c", fused_product},
};

}  // namespace

std::span<const TorchOp> torch_pointwise_ops() {
  return pointwise_rows;
}

}  // namespace sylvite
