#include "lowering/algorithms/halide_math.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <string>

namespace sylvite {
namespace {

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::select;
using Halide::Internal::Call;

Expr strict(Call::IntrinsicOp op, const Halide::Type& type, const Expr& a, const Expr& b) {
  return Call::make(type, op, {a, b}, Call::PureIntrinsic);
}

bool is_f64(const Expr& x) {
  return x.type().bits() == 64;
}
Expr infinity(const Expr& like) {
  return constant_like(like, std::numeric_limits<double>::infinity());
}
Expr not_a_number(const Expr& like) {
  return constant_like(like, std::numeric_limits<double>::quiet_NaN());
}

thread_local int device_math_scopes = 0;

/// libm's function of a double, one lane at a time.
Expr libm(const std::string& function, const Expr& x) {
  return Call::make(Float(64), function + "_f64", {x}, Call::PureExtern);
}

/// Highest power first; `factor` times it, which is exact where that is a power of two.
Expr polynomial(const Expr& x, std::initializer_list<float> coefficients, float factor = 1) {
  Expr sum;
  for (const float c : coefficients) sum = sum.defined() ? sum * x + factor * c : Expr(factor * c);
  return sum;
}

/// An intrinsic of LLVM's, on f32.
Expr intrinsic(const std::string& name, const std::vector<Expr>& operands) {
  return Call::make(Float(32), name, operands, Call::PureExtern);
}

/// 2^(x log2(e)) by the special function unit. What rounding takes from the product comes back as a factor
/// near one: the instruction alone would lose |x| units in the last place. An infinite power stays: times what is left it is none.
Expr device_exp(const Expr& x) {
  constexpr float log2_e = 1.44269502F;
  constexpr float log2_e_rest = 1.92596299e-8F;
  const Expr inside = Halide::min(Halide::max(x, -110.0F), 100.0F);
  const Expr exponent = strict_mul(inside, Expr(log2_e));
  const Expr lost = intrinsic("llvm.fma.f32", {inside, Expr(log2_e), strict_sub(Expr(0.0F), exponent)});
  const Expr rest = intrinsic("llvm.fma.f32", {inside, Expr(log2_e_rest), lost});
  const Expr power = intrinsic("llvm.nvvm.ex2.approx.ftz.f", {exponent});
  const Expr scaled = intrinsic("llvm.fma.f32", {strict_mul(rest, Expr(0.693147182F)), power, power});
  const Expr is_infinite = Halide::reinterpret<std::uint32_t>(power) ==
                           Halide::Internal::make_const(Halide::UInt(32), 0x7f800000U);
  return select(is_not_a_number(x), x, select(is_infinite, power, scaled));
}

Expr magnitude(const Expr& x) {
  return Halide::reinterpret<float>(Halide::reinterpret<std::uint32_t>(x) & cast<std::uint32_t>(0x7fffffff));
}

// NaN and infinity are told by their bits: where a number comes from plain arithmetic, the code generator
// takes for granted that it is neither, and comparisons of floats would be folded away.
Expr magnitude_bits(const Expr& x) {
  const Halide::Type bits = Halide::UInt(x.type().bits());
  return Halide::reinterpret(bits, x) &
         Halide::Internal::make_const(bits, std::uint64_t{is_f64(x) ? ~0ULL >> 1 : ~0U >> 1});
}
Expr infinity_bits(const Expr& x) {
  const Halide::Type bits = Halide::UInt(x.type().bits());
  return Halide::Internal::make_const(bits, std::uint64_t{is_f64(x) ? 0x7ffULL << 52 : 0xffULL << 23});
}
Expr is_finite_number(const Expr& x) {
  return magnitude_bits(x) < infinity_bits(x);
}

bool is_number(const Expr& x) {
  const auto value = Halide::Internal::as_const_float(x);
  return value && !std::isnan(*value);
}

Expr with_sign_of(const Expr& value, const Expr& sign) {
  const Expr bit =
      Halide::reinterpret<std::uint32_t>(sign) & Halide::Internal::make_const(Halide::UInt(32), 0x80000000U);
  return Halide::reinterpret<float>(Halide::reinterpret<std::uint32_t>(value) | bit);
}

/// x = n*log(2) + f, |f| <= log(2)/2. The sum of x / log(2) with a number that has no place for a fraction has n in its low bits.
struct ReducedExponent {
  Expr bits;  ///< u32, whose low bits are n and a bias
  Expr f;
};

ReducedExponent reduce_exponent(const Expr& x, int bias) {
  const float rounder = 12582912.0F + static_cast<float>(bias);  // 1.5 2^23
  const Expr rounded = x * 1.44269504F + rounder;
  const Expr n = strict_sub(rounded, Expr(rounder));
  return {Halide::reinterpret<std::uint32_t>(rounded), (x - n * 0.693359375F) + n * 2.12194440e-4F};
}

constexpr int bias_of_exponents = 127;

/// 2^n of low bits that are n + 127 in [1, 254].
Expr power_of_two(const Expr& bits) {
  return Halide::reinterpret<float>(bits << 23);
}

/// `factor` times exp(f) for |f| <= log(2)/2: our minimax fit of what is beyond 1 + f, relative error 3e-9 before rounding.
Expr small_exp(const Expr& f, float factor = 1) {
  return polynomial(f, {0.00138145511F, 0.00836873986F, 0.041668389F, 0.166665211F, 0.49999994F, 1.0F, 1.0F},
                    factor);
}

/// x between two numbers. NaN stays, and comes through the arithmetic that follows: to choose it at the end costs three
/// instructions.
Expr limited(const Expr& x, float low, float high) {
  return nan_min(nan_max(x, Expr(low)), Expr(high));
}

/// Where exp and division are exact or cheap: f64, and a GPU's own functions.
bool divides_sigmoid(const Expr& x) {
  return is_f64(x) || device_math_scopes > 0;
}

Expr divided_sigmoid(const Expr& x) {
  const Expr negative =
      is_f64(x) ? -x
                : Halide::reinterpret<float>(Halide::reinterpret<std::uint32_t>(x) ^
                                             Halide::Internal::make_const(Halide::UInt(32), 0x80000000U));
  return strict_div(constant_like(x, 1), strict_add(math_exp(negative), constant_like(x, 1)));
}

/// 1 / (1 + exp(-x)); relative error 3e-7, zero below -88. With e = exp(-|x|) in [0, 1]
/// nothing overflows, one power of two is enough, and the divisor in [1, 2] has its inverse by
/// multiplications: the divider would take as long as all the rest.
Expr number_sigmoid(const Expr& x) {
  const Expr size = nan_min(magnitude(x), Expr(88.0F));
  // The sum has no place for a fraction: its low bits are the nearest integer n = -|x| / log(2), plus 127.
  constexpr float rounder = 12582912.0F + 127.0F;
  const Expr rounded = size * -1.44269504F + rounder;
  const Expr n = strict_sub(rounded, Expr(rounder));
  const Expr f = (n * -0.693359375F - size) + n * 2.12194440e-4F;
  // exp(f) for |f| <= log(2)/2; our minimax fit, relative error 8e-8.
  const Expr p =
      polynomial(f, {0.0082975123F, 0.0419163741F, 0.166675821F, 0.499988854F, 0.999999702F, 1.00000012F});
  const Expr e = p * Halide::reinterpret<float>(Halide::reinterpret<std::uint32_t>(rounded) << 23);
  // 1 / (1 + e): a minimax fit of 1.7e-3, whose error one step takes to its third power.
  const Expr guess = polynomial(e, {-0.22183691F, 0.665511191F, -0.942807734F, 0.998266935F});
  const Expr error = 1.0F - (1.0F + e) * guess;
  const Expr of_size = guess * (error * error + error) + guess;
  return select(Halide::reinterpret<int>(x) < 0, e * of_size, of_size);
}

/// Odd polynomial of atan on [0, 1].
Expr small_atan(const Expr& x) {
  const Expr s = x * x;
  const Expr tail =
      polynomial(s, {8.05374449538e-2F, -1.38776856032e-1F, 1.99777106478e-1F, -3.33329491539e-1F});
  return tail * s * x + x;
}

/// x minus the nearest multiple of pi/2, and that multiple. In f64: accurate to |x| = 3e9; what is larger counts as a multiple.
struct Quadrant {
  Expr index, rest;
};
Quadrant reduce_angle(const Expr& x) {
  const auto number = [](double value) { return Halide::Internal::make_const(Halide::Float(64), value); };
  Expr rest = cast<double>(x);
  const Expr n = Halide::floor(rest * number(2 / std::numbers::pi) + number(0.5));
  // Products with heads of pi/2 of 22 bits are exact while n < 2^31; strict operations keep the order.
  for (const double part : {0x1.921fbp+0, 0x1.5110bp-22, 0x1.18469898cc517p-44})
    rest = strict_sub(rest, strict_mul(n, number(part)));
  return {cast<int>(Halide::clamp(n, number(-2147483647.0), number(2147483647.0))),
          cast<float>(Halide::clamp(rest, number(-1), number(1)))};
}

Expr small_sin(const Expr& x) {
  const Expr s = x * x;
  return polynomial(s, {-1.9515295891e-4F, 8.3321608736e-3F, -1.6666654611e-1F}) * s * x + x;
}
Expr small_cos(const Expr& x) {
  const Expr s = x * x;
  return polynomial(s, {2.443315711809948e-5F, -1.388731625493765e-3F, 4.166664568298827e-2F}) * s * s -
         0.5F * s + 1.0F;
}

/// sin(x + quarter_turns*pi/2).
Expr sine(const Expr& x, int quarter_turns) {
  const Quadrant quadrant = reduce_angle(x);
  const Expr index = quadrant.index + quarter_turns;
  const Expr value = select((index & 1) == 0, small_sin(quadrant.rest), small_cos(quadrant.rest));
  const Expr sign = cast<std::uint32_t>(index & 2) << 30;
  const Expr result = Halide::reinterpret<float>(Halide::reinterpret<std::uint32_t>(value) ^ sign);
  return select(is_finite_number(x), result, not_a_number(x));
}

/// asin(x) for x in [0, 1] through the half angle above 0.5; `x` is a magnitude.
Expr positive_asin(const Expr& x) {
  const Expr is_large = x > 0.5F;
  const Expr s = select(is_large, 0.5F * (1.0F - x), x * x);
  const Expr root = select(is_large, Halide::sqrt(Halide::max(s, 0.0F)), x);
  const Expr tail = polynomial(
      s, {4.2163199048e-2F, 2.4181311049e-2F, 4.5470025998e-2F, 7.4953002686e-2F, 1.6666752422e-1F});
  const Expr value = tail * s * root + root;
  return select(is_large, static_cast<float>(std::numbers::pi / 2) - 2.0F * value, value);
}

}  // namespace

Expr constant_like(const Expr& like, double value) {
  return Halide::Internal::make_const(like.type(), value);
}

Expr strict_add(const Expr& a, const Expr& b) {
  return a.type().is_float() ? strict(Call::strict_add, a.type(), a, b) : a + b;
}
Expr strict_sub(const Expr& a, const Expr& b) {
  return a.type().is_float() ? strict(Call::strict_sub, a.type(), a, b) : a - b;
}
Expr strict_mul(const Expr& a, const Expr& b) {
  return a.type().is_float() ? strict(Call::strict_mul, a.type(), a, b) : a * b;
}
Expr strict_div(const Expr& a, const Expr& b) {
  // Halide refuses a division by the constant zero, whose results are those of a product with infinity.
  if (b.type().is_float() && Halide::Internal::is_const_zero(b)) {
    const bool is_negative = std::signbit(*Halide::Internal::as_const_float(b));
    return strict_mul(a, is_negative ? -infinity(b) : infinity(b));
  }
  return a.type().is_float() ? strict(Call::strict_div, a.type(), a, b) : a / b;
}
Expr strict_less(const Expr& a, const Expr& b) {
  return a.type().is_float() ? strict(Call::strict_lt, Halide::Bool(), a, b) : a < b;
}
Expr strict_less_equal(const Expr& a, const Expr& b) {
  // Not strict_le: Halide 21 compiles that as !(b < a), which is true for NaN.
  return a.type().is_float() ? strict_less(a, b) || strict_equal(a, b) : a <= b;
}
Expr strict_equal(const Expr& a, const Expr& b) {
  return a.type().is_float() ? strict(Call::strict_eq, Halide::Bool(), a, b) : a == b;
}
Expr is_not_a_number(const Expr& x) {
  return x.type().is_float() ? magnitude_bits(x) > infinity_bits(x) : Halide::Internal::const_false();
}
Expr is_infinity(const Expr& x) {
  if (!x.type().is_float()) return Halide::Internal::const_false();
  // An equation of bits with infinity's is folded away, too; infinity less itself is NaN.
  return is_not_a_number(strict_sub(x, x)) && !is_not_a_number(x);
}
Expr keep_nan(const Expr& x, const Expr& value) {
  return x.type().is_float() ? select(is_not_a_number(x), x, value) : value;
}
// Beside a number, one comparison is enough, and with the selection one instruction of the processor's.
Expr nan_max(const Expr& a, const Expr& b) {
  if (!a.type().is_float()) return Halide::max(a, b);
  if (is_number(b)) return select(strict_less(a, b), b, a);
  return select(strict_less(b, a) || is_not_a_number(a), a, b);
}
Expr nan_min(const Expr& a, const Expr& b) {
  if (!a.type().is_float()) return Halide::min(a, b);
  if (is_number(b)) return select(strict_less(b, a), b, a);
  return select(strict_less(a, b) || is_not_a_number(a), a, b);
}

DeviceMath::DeviceMath() {
  ++device_math_scopes;
}
DeviceMath::~DeviceMath() {
  --device_math_scopes;
}
bool DeviceMath::is_used() {
  return device_math_scopes > 0;
}

Expr math_exp(const Expr& x) {
  if (is_f64(x)) return libm("exp", x);
  if (device_math_scopes > 0) return device_exp(x);
  // Up to where it neither underflows to zero nor overflows for good.
  const ReducedExponent reduced = reduce_exponent(limited(x, -104.0F, 89.0F), 2 * bias_of_exponents);
  // 2^n in two factors: overflow gives infinity and underflow a subnormal, as they should.
  const Expr half = reduced.bits >> 1;
  return strict_mul(strict_mul(small_exp(reduced.f), power_of_two(half)), power_of_two(reduced.bits - half));
}

Expr math_exp_up_to_zero(const Expr& x) {
  if (is_f64(x) || device_math_scopes > 0) return math_exp(x);
  // Of the least numbers n is -126, whose bits are those of zero; the next power's values are normal still.
  const ReducedExponent reduced = reduce_exponent(nan_max(x, Expr(-87.3F)), bias_of_exponents - 1);
  return strict_mul(small_exp(reduced.f, 2), power_of_two(reduced.bits));
}

Expr math_log(const Expr& x) {
  if (is_f64(x)) return libm("log", x);
  const Expr smallest_normal = constant_like(x, std::numeric_limits<float>::min());
  const Expr is_subnormal = strict_less(x, smallest_normal);
  const Expr scaled = select(is_subnormal, strict_mul(x, Expr(8388608.0F)), x);
  const Expr bits = Halide::reinterpret<int>(scaled);
  // The mantissa in [sqrt(1/2), sqrt(2)).
  const Expr offset = bits - 0x3f3504f3;
  const Expr exponent = cast<float>((offset >> 23) - select(is_subnormal, 23, 0));
  const Expr f = Halide::reinterpret<float>((offset & 0x7fffff) + 0x3f3504f3) - 1.0F;
  const Expr tail = polynomial(
      f, {7.0376836292e-2F, -1.1514610310e-1F, 1.1676998740e-1F, -1.2420140846e-1F, 1.4249322787e-1F,
          -1.6668057665e-1F, 2.0000714765e-1F, -2.4999993993e-1F, 3.3333331174e-1F});
  // Where two products are summed, either may go into the fused operation; strict ones leave no choice, so
  // that every schedule rounds alike.
  const Expr square = strict_mul(f, f);
  const Expr small = strict_sub(strict_sub(tail * f * square, strict_mul(exponent, Expr(2.12194440e-4F))),
                                strict_mul(square, Expr(0.5F)));
  const Expr value = strict_add(strict_add(f, small), strict_mul(exponent, Expr(0.693359375F)));
  const Expr zero = constant_like(x, 0);
  const Expr positive = select(is_finite_number(x), value, x);
  const Expr special = select(strict_equal(x, zero), -infinity(x), keep_nan(x, not_a_number(x)));
  return select(strict_less(zero, x), positive, special);
}

Expr math_log1p(const Expr& x) {
  if (is_f64(x)) return libm("log", strict_add(x, constant_like(x, 1)));
  // log(u) * x / (u - 1) undoes the rounding of u = 1 + x.
  const Expr u = strict_add(x, Expr(1.0F));
  const Expr difference = strict_sub(u, Expr(1.0F));
  const Expr is_exact = strict_equal(difference, constant_like(x, 0)) || !is_finite_number(x);
  const Expr corrected = strict_mul(math_log(u), strict_div(x, difference));
  return select(strict_equal(difference, constant_like(x, 0)), x, select(is_exact, math_log(u), corrected));
}

Expr math_sin(const Expr& x) {
  return is_f64(x) ? libm("sin", x) : sine(x, 0);
}
Expr math_cos(const Expr& x) {
  return is_f64(x) ? libm("cos", x) : sine(x, 1);
}
Expr math_tan(const Expr& x) {
  return is_f64(x) ? libm("tan", x) : strict_div(sine(x, 0), sine(x, 1));
}

Expr math_asin(const Expr& x) {
  if (is_f64(x)) return libm("asin", x);
  const Expr size = magnitude(x);
  return select(strict_less_equal(size, Expr(1.0F)), with_sign_of(positive_asin(size), x), not_a_number(x));
}

Expr math_acos(const Expr& x) {
  if (is_f64(x)) return libm("acos", x);
  const Expr size = magnitude(x);
  const Expr half_pi = static_cast<float>(std::numbers::pi / 2);
  // Above 0.5, acos(x) = 2 asin(sqrt((1-x)/2)) keeps the small angles exact.
  const Expr s = 0.5F * (1.0F - size);
  const Expr near_one = 2.0F * positive_asin(Halide::sqrt(Halide::max(s, 0.0F)));
  const Expr far = half_pi - with_sign_of(positive_asin(size), x);
  const Expr value =
      select(x > 0.5F, near_one, x < -0.5F, static_cast<float>(std::numbers::pi) - near_one, far);
  return select(strict_less_equal(size, Expr(1.0F)), value, not_a_number(x));
}

Expr math_atan(const Expr& x) {
  if (is_f64(x)) return libm("atan", x);
  const Expr size = Halide::min(magnitude(x), 1e30F);
  const Expr is_large = size > 2.414213562373095F;
  const Expr is_middle = size > 0.4142135623730950F;
  const Expr reduced =
      select(is_large, -1.0F / Halide::max(size, 1.0F), is_middle, (size - 1.0F) / (size + 1.0F), size);
  const Expr start = select(is_large, static_cast<float>(std::numbers::pi / 2), is_middle,
                            static_cast<float>(std::numbers::pi / 4), 0.0F);
  return keep_nan(x, with_sign_of(start + small_atan(reduced), x));
}

Expr math_sinh(const Expr& x) {
  if (is_f64(x)) return libm("sinh", x);
  const Expr s = Halide::min(magnitude(x), 1.0F) * Halide::min(magnitude(x), 1.0F);
  const Expr series = polynomial(s, {2.7557319e-6F, 1.9841270e-4F, 8.3333333e-3F, 1.6666667e-1F});
  const Expr small = strict_add(x, strict_mul(x, s * series));
  // exp(|x|/2) squared reaches infinity only where sinh does.
  const Expr half = math_exp(strict_mul(magnitude(x), Expr(0.5F)));
  const Expr large = strict_sub(strict_mul(strict_mul(half, Expr(0.5F)), half),
                                strict_div(strict_div(Expr(0.5F), half), half));
  const Expr is_small = strict_less(magnitude(x), Expr(1.0F));
  return select(is_small, small, with_sign_of(large, x));
}

Expr math_cosh(const Expr& x) {
  if (is_f64(x)) return libm("cosh", x);
  const Expr half = math_exp(strict_mul(magnitude(x), Expr(0.5F)));
  return strict_add(strict_mul(strict_mul(half, Expr(0.5F)), half),
                    strict_div(strict_div(Expr(0.5F), half), half));
}

Expr math_tanh(const Expr& x) {
  if (is_f64(x)) return libm("tanh", x);
  // tanh = -expm1(-2|x|) / (2 + expm1(-2|x|)); near zero a polynomial keeps the relative error.
  const Expr size = nan_min(magnitude(x), Expr(10.0F));
  const Expr near = nan_min(size, Expr(0.625F));
  const Expr s = near * near;
  const Expr tail = polynomial(
      s, {-5.70498872745e-3F, 2.06390887954e-2F, -5.37397155531e-2F, 1.33314422036e-1F, -3.33332819422e-1F});
  const Expr small = tail * s * size + size;
  const ReducedExponent reduced = reduce_exponent(size * 2.0F, bias_of_exponents);
  const Expr power = small_exp(reduced.f) * power_of_two(reduced.bits);
  const Expr large = 1.0F - 2.0F / (power + 1.0F);
  return with_sign_of(select(strict_less(size, Expr(0.625F)), small, large), x);
}

Expr math_asinh(const Expr& x) {
  if (is_f64(x)) return libm("asinh", x);
  const Expr size = magnitude(x);
  const Expr square = strict_mul(size, size);
  // log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))); far out, log(2|x|).
  const Expr root = Halide::sqrt(strict_add(square, Expr(1.0F)));
  const Expr near = math_log1p(strict_add(size, strict_div(square, strict_add(root, Expr(1.0F)))));
  const Expr far = strict_add(math_log(size), Expr(static_cast<float>(std::numbers::ln2)));
  return keep_nan(x, with_sign_of(select(strict_less(size, Expr(1e9F)), near, far), x));
}

Expr math_acosh(const Expr& x) {
  if (is_f64(x)) return libm("acosh", x);
  const Expr t = strict_sub(x, Expr(1.0F));
  const Expr root = Halide::sqrt(Halide::max(strict_add(strict_mul(t, t), strict_mul(t, Expr(2.0F))), 0.0F));
  const Expr near = math_log1p(strict_add(t, root));
  const Expr far = strict_add(math_log(x), Expr(static_cast<float>(std::numbers::ln2)));
  const Expr value = select(strict_less(x, Expr(1e9F)), near, far);
  return select(strict_less_equal(Expr(1.0F), x), value, not_a_number(x));
}

Expr math_atanh(const Expr& x) {
  if (is_f64(x)) return libm("atanh", x);
  const Expr size = magnitude(x);
  const Expr ratio = strict_div(strict_mul(size, Expr(2.0F)), strict_sub(Expr(1.0F), size));
  const Expr value = with_sign_of(strict_mul(math_log1p(ratio), Expr(0.5F)), x);
  return select(strict_less_equal(size, Expr(1.0F)), value, not_a_number(x));
}

Expr math_erf(const Expr& x) {
  if (is_f64(x)) return Call::make(Float(64), "erf", {x}, Call::PureExtern);
  // erf(x) = x P(s) with s = x*x scaled to [-1, 1], |x| clamped to 3.92 where erf rounds to 1; our minimax
  // fit of degree 14.
  const Expr clamped = limited(x, -3.92F, 3.92F);
  const Expr s = clamped * clamped * 0.130154102F - 1.0F;
  const Expr p = polynomial(s, {0.00185441543F, -0.0044679265F, 0.00274304431F, -0.00319987697F, 0.013127455F,
                                -0.0232781875F, 0.0303982821F, -0.0421489479F, 0.0581652428F, -0.0742777427F,
                                0.0906327641F, -0.109156593F, 0.134082501F, -0.180109199F, 0.36073683F});
  return p * clamped;
}

Expr math_sqrt(const Expr& x) {
  const Expr root = Halide::sqrt(x);
  return select(strict_less(x, constant_like(x, 0)), not_a_number(x), keep_nan(x, root));
}

Expr math_rsqrt(const Expr& x) {
  return strict_div(constant_like(x, 1), math_sqrt(x));
}

Expr math_sigmoid(const Expr& x) {
  return divides_sigmoid(x) ? divided_sigmoid(x) : number_sigmoid(x);
}

Expr math_silu(const Expr& x) {
  return strict_mul(x, divides_sigmoid(x) ? divided_sigmoid(x) : number_sigmoid(x));  // NaN comes through x
}

// Inverses by the special function unit, as powers are: a division is some ten instructions.
Expr device_sigmoid(const Expr& x) {
  const Expr power = intrinsic("llvm.nvvm.ex2.approx.ftz.f", {strict_mul(x, Expr(-1.44269502F))});
  return intrinsic("llvm.nvvm.rcp.approx.ftz.f", {strict_add(power, Expr(1.0F))});
}

Expr device_tanh(const Expr& x) {
  constexpr float near =
      0.02F;  // where the difference below loses digits, and the series' third term is none
  const Expr size = magnitude(x);
  const Expr power = intrinsic("llvm.nvvm.ex2.approx.ftz.f", {strict_mul(size, Expr(-2.88539004F))});
  const Expr inverse = intrinsic("llvm.nvvm.rcp.approx.ftz.f", {strict_add(power, Expr(1.0F))});
  const Expr large = strict_mul(strict_sub(Expr(1.0F), power), inverse);
  const Expr small =
      strict_mul(size, strict_sub(Expr(1.0F), strict_mul(strict_mul(size, size), Expr(1.0F / 3))));
  return with_sign_of(select(strict_less(size, Expr(near)), small, large), x);
}

Expr math_softplus(const Expr& x) {
  // max(x, 0) + log1p(exp(-|x|))
  const Expr zero = constant_like(x, 0);
  const Expr size = is_f64(x) ? Halide::abs(x) : magnitude(x);
  const Expr positive = select(strict_less(x, zero), zero, x);
  return strict_add(positive, math_log1p(math_exp(strict_sub(zero, size))));
}

}  // namespace sylvite
