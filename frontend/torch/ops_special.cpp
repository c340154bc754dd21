// Special functions of one number, and what is common to two integers.

#include <cmath>
#include <limits>
#include <numbers>

#include "frontend/graph/loop_builder.h"
#include "frontend/torch/promote.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

constexpr double pi = std::numbers::pi;
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A function of f64, for floats of any size: formulas that lose a few digits of f64 lose none of f32.
template <Sym (*f)(Sym)>
void in_f64(TorchContext& c) {
  c.output(cast(f(c.operand("self", DType::f64)), c.result_dtype()));
}

Sym is_below(Sym x, double bound) {
  return apply(Op::less, x, bound);
}

/// pi x less the multiple of pi that is nearest, so that sines of it are 0 where they are.
Sym half_turns(Sym x) {
  return (x - apply(Op::round, x)) * pi;
}

/// Of x >= 0.5: Stirling's series behind 8, after steps down from there by lgamma(x + 1) = lgamma(x) + log(x).
Sym lgamma_right(Sym x) {
  const Sym is_near = is_below(x, 8.0);
  Sym product = where(is_near, x, 1.0);
  for (int i = 1; i < 8; ++i) product = product * where(is_near, x + static_cast<double>(i), 1.0);
  const Sym y = where(is_near, x + 8.0, x);
  const Sym log_y = apply(Op::log, y);
  constexpr double series[] = {-1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  const Sym inverse = apply(Op::reciprocal, y);
  const Sym square = inverse * inverse;
  Sym sum = square * series[5] + series[4];
  for (int i = 3; i >= 0; --i) sum = sum * square + series[i];
  const Sym rest = inverse * (sum * square + 1.0 / 12);
  return y * (log_y - 1.0) - log_y * 0.5 + 0.5 * std::log(2 * pi) + rest - apply(Op::log, product);
}

Sym lgamma(Sym x) {
  const Sym is_left = is_below(x, 0.5);
  const Sym right = lgamma_right(where(is_left, 1.0 - x, x));
  const Sym sine = apply(Op::abs, apply(Op::sin, half_turns(x)));
  const Sym value = where(is_left, std::log(pi) - apply(Op::log, sine) - right, right);
  return where(apply(Op::is_inf, x), infinite, value);
}

/// Its derivative, behind 10 by the series of its logarithm.
Sym digamma_right(Sym x) {
  Sym steps = apply(Op::reciprocal, x);
  for (int i = 1; i < 10; ++i) steps = steps + apply(Op::reciprocal, x + static_cast<double>(i));
  const Sym y = x + 10.0;
  const Sym inverse = apply(Op::reciprocal, y);
  const Sym square = inverse * inverse;
  constexpr double series[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760};
  Sym sum = square * series[5] + series[4];
  for (int i = 3; i >= 0; --i) sum = sum * square + series[i];
  return apply(Op::log, y) - inverse * 0.5 - sum * square - steps;
}

Sym digamma(Sym x) {
  const Sym is_left = is_below(x, 0.0);
  const Sym right = digamma_right(where(is_left, 1.0 - x, x));
  const Sym turns = half_turns(x);
  const Sym left = right - pi / apply(Op::tan, turns);
  return where(is_left, where(apply(Op::equal, turns, 0.0), nan, left), right);
}

/// The derivative of that, in the same way.
Sym trigamma(Sym x) {
  const Sym is_left = is_below(x, 0.5);
  const Sym z = where(is_left, 1.0 - x, x);
  const auto inverse_square = [](Sym v) {
    const Sym inverse = apply(Op::reciprocal, v);
    return inverse * inverse;
  };
  Sym steps = inverse_square(z);
  for (int i = 1; i < 10; ++i) steps = steps + inverse_square(z + static_cast<double>(i));
  const Sym inverse = apply(Op::reciprocal, z + 10.0);
  const Sym square = inverse * inverse;
  constexpr double series[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730};
  Sym sum = square * series[5] + series[4];
  for (int i = 3; i >= 0; --i) sum = sum * square + series[i];
  const Sym right = steps + inverse * (sum * square + 1.0) + square * 0.5;
  const Sym sine = apply(Op::sin, half_turns(x)) * (1 / pi);
  return where(is_left, inverse_square(sine) - right, right);
}

void polygamma(TorchContext& c) {
  const std::int64_t n = c.integer("n");
  if (n == 0) return in_f64<digamma>(c);
  if (n == 1) return in_f64<trigamma>(c);
  throw UnsupportedError("derivative {} of digamma is not served, the first one is", n);
}

Sym polynomial(Sym x, std::initializer_list<double> coefficients) {
  Sym sum;
  for (const double coefficient : coefficients)
    sum = sum ? sum * x + coefficient : x.builder().filled(x.dtype(), x.dims(), coefficient);
  return sum;
}

/// A rational approximation (Giles' form, as torch has it), and two of Newton's steps.
Sym erfinv(Sym y) {
  const Sym far = apply(Op::abs, y);
  const Sym square = y * y;
  const Sym central = y * polynomial(square, {-0.140543331, 0.914624893, -1.645349621, 0.886226899}) /
                      polynomial(square, {0.012229801, -0.329097515, 1.442710462, -2.118377725, 1.0});
  const Sym z = apply(Op::sqrt, -apply(Op::log, (1.0 - far) * 0.5));
  const Sym tail = polynomial(z, {1.641345311, 3.429567803, -1.624906493, -1.970840454}) /
                   polynomial(z, {1.637067800, 3.543889200, 1.0});
  Sym x = where(is_below(far, 0.7), central, apply(Op::sign, y) * tail);
  for (int i = 0; i < 2; ++i)
    x = x - (apply(Op::erf, x) - y) / (apply(Op::exp, -(x * x)) * (2 / std::sqrt(pi)));
  const Sym edge = where(apply(Op::equal, far, 1.0), apply(Op::sign, y) * infinite, nan);
  return where(is_below(far, 1.0), x, edge);
}

/// The place below which a share of a normal distribution lies.
Sym ndtri(Sym share) {
  return erfinv(share * 2.0 - 1.0) * std::numbers::sqrt2;
}

// Bessel functions: their power series near 0, and what they approach far away.

/// x^n sum_k sign^k (x/2)^2k / (k! (k+n)!) / 2^n
Sym bessel_series(Sym x, int order, double sign, int terms) {
  const Sym quarter = x * x * (0.25 * sign);
  Sym sum = quarter * (1.0 / (static_cast<double>(terms) * (terms + order))) + 1.0;
  for (int k = terms - 1; k > 0; --k)
    sum = sum * quarter * (1.0 / (static_cast<double>(k) * (k + order))) + 1.0;
  return order == 0 ? sum : sum * x * 0.5;
}

/// The terms of Hankel's expansion in 1/x: each is the one before times this over x.
double hankel_step(int order, int k) {
  const double odd = 2.0 * k - 1;
  return (4.0 * order * order - odd * odd) / (8.0 * k);
}

constexpr double modified_bound = 18;

/// exp(-|x|) I_order(x)
template <int order>
Sym modified_bessel_scaled(Sym x) {
  const Sym far = apply(Op::abs, x);
  const Sym near = apply(Op::minimum, far, modified_bound);
  const Sym inside = bessel_series(near, order, 1, 44) * apply(Op::exp, -near);
  const Sym y = apply(Op::maximum, far, modified_bound);
  const Sym inverse = apply(Op::reciprocal, y);
  constexpr int terms = 24;
  Sym sum = x.builder().filled(x.dtype(), x.dims(), 1);
  for (int k = terms; k > 0; --k) sum = sum * inverse * -hankel_step(order, k) + 1.0;
  const Sym outside = sum * apply(Op::rsqrt, y * (2 * pi));
  const Sym size = where(is_below(far, modified_bound), inside, outside);
  return order == 0 ? size : size * apply(Op::sign, x);
}

template <int order>
Sym modified_bessel(Sym x) {
  return modified_bessel_scaled<order>(x) * apply(Op::exp, apply(Op::abs, x));
}

constexpr double bessel_bound = 14;

/// J_order(x)
template <int order>
Sym bessel(Sym x) {
  const Sym far = apply(Op::abs, x);
  const Sym inside = bessel_series(apply(Op::minimum, far, bessel_bound), order, -1, 36);
  const Sym y = apply(Op::maximum, far, bessel_bound);
  const Sym inverse = apply(Op::reciprocal, y);
  // P and Q of sqrt(2 / (pi x)) (P cos - Q sin): the even and odd terms of the expansion, in turns of sign.
  Sym even = x.builder().filled(x.dtype(), x.dims(), 1);
  Sym odd = even * 0.0;
  Sym term = even;
  for (int k = 1; k <= 24; ++k) {
    term = term * inverse * hankel_step(order, k);
    Sym& sum = k % 2 == 0 ? even : odd;
    sum = (k / 2) % 2 == 0 ? sum + term : sum - term;
  }
  const Sym angle = y - (pi / 4 + order * pi / 2);
  const Sym outside =
      (even * apply(Op::cos, angle) - odd * apply(Op::sin, angle)) * apply(Op::sqrt, inverse * (2 / pi));
  const Sym size = where(is_below(far, bessel_bound), inside, outside);
  return order == 0 ? size : where(is_below(x, 0), -size, size);
}

/// Results of f64 would have fewer digits than torch's.
template <Sym (*f)(Sym)>
void to_f32(TorchContext& c) {
  if (c.result_dtype() == DType::f64) throw UnsupportedError("results of f64 are not served");
  in_f64<f>(c);
}

// Integers

/// How many zeros there are behind the last one of an unsigned number, which is the exponent of that bit as a float. Of 0 it is
/// so large that a shift by it leaves 0.
Sym zeros_behind(Sym x) {
  const bool is_long = dtype_size(x.dtype()) == 8;
  const Sym last = apply(Op::bitwise_and, x, cast(-cast(x, is_long ? DType::i64 : DType::i32), x.dtype()));
  const Sym real = cast(last, is_long ? DType::f64 : DType::f32);
  const Sym bits = x.builder().add(Op::bitcast, {real}, {{"to", std::string(dtype_name(x.dtype()))}});
  const Sym exponent =
      apply(Op::shift_right, bits, cast(x.builder().scalar(DType::i32, is_long ? 52 : 23), x.dtype()));
  return exponent - (is_long ? 1023.0 : 127.0);
}

/// Without its sign, as a word of 32 bits or 64.
Sym size_of(Sym x) {
  const bool is_long = dtype_size(x.dtype()) == 8;
  const DType word = is_long ? DType::u64 : DType::u32;
  if (is_unsigned_integer(x.dtype())) return cast(x, word);
  return cast(apply(Op::abs, cast(x, is_long ? DType::i64 : DType::i32)), word);
}

/// Without divisions, which vectors of integers lack (Stein's algorithm): the difference of two odd numbers is even, and without its
/// zeros behind takes the place of the larger. Each trip halves their product at least; of equal ones one becomes 0.
Sym greatest_divisor(Sym a, Sym b) {
  const Sym sizes[] = {size_of(a), size_of(b)};
  const Sym zeros[] = {zeros_behind(sizes[0]), zeros_behind(sizes[1])};
  const auto bits = static_cast<std::int64_t>(8 * dtype_size(a.dtype()));
  LoopSpec spec{.trips = 2 * bits - 1, .is_reverse = false, .given = {}};
  for (int i = 0; i < 2; ++i) spec.given.states.push_back(apply(Op::shift_right, sizes[i], zeros[i]));
  const TripValues found = run_loop(a.builder(), spec, [](const TripValues& trip) -> TripValues {
    const Sym least = apply(Op::minimum, trip.states[0], trip.states[1]);
    const Sym between = apply(Op::maximum, trip.states[0], trip.states[1]) - least;
    return {{least, apply(Op::shift_right, between, zeros_behind(between))}, {}};
  });
  const Sym odd = apply(Op::maximum, found.states[0], found.states[1]);
  return cast(apply(Op::shift_left, odd, apply(Op::minimum, zeros[0], zeros[1])), a.dtype());
}

TorchPair integer_pair(TorchContext& c) {
  const TorchPair pair = pair_as(c, c.result_dtype());
  const Dims dims = c.result_dims();
  return {broadcast_to(pair.a, dims), broadcast_to(pair.b, dims)};
}

void gcd(TorchContext& c) {
  const TorchPair pair = integer_pair(c);
  c.output(greatest_divisor(pair.a, pair.b));
}

void lcm(TorchContext& c) {
  const TorchPair pair = integer_pair(c);
  const Sym divisor = greatest_divisor(pair.a, pair.b);
  const Sym none = apply(Op::equal, divisor, 0.0);
  c.output(where(none, 0.0, apply(Op::abs, pair.a / where(none, 1.0, divisor) * pair.b)));
}

// Signs

/// Zeros have one, too.
Sym is_negative(Sym x) {
  const Sym below = is_below(x, 0.0);
  if (!is_float(x.dtype())) return below;
  return apply(Op::logical_or, below, is_below(apply(Op::reciprocal, x), 0.0));
}

void signbit(TorchContext& c) {
  c.output(is_negative(c.tensor("self")));
}

void copysign(TorchContext& c) {
  const TorchPair pair = pair_as(c, c.result_dtype());
  const Sym size = apply(Op::abs, pair.a);
  c.output(where(is_negative(pair.b), -size, size));
}

constexpr std::string_view of_self = "self";
constexpr std::string_view of_self_and_other = "self other";

const TorchOp special_rows[] = {
    {"aten.copysign.Scalar", of_self_and_other, copysign},
    {"aten.copysign.Tensor", of_self_and_other, copysign},
    {"aten.digamma.default", of_self, in_f64<digamma>},
    {"aten.erfinv.default", of_self, in_f64<erfinv>},
    {"aten.gcd.default", of_self_and_other, gcd},
    {"aten.i0.default", of_self, to_f32<modified_bessel<0>>},
    {"aten.lcm.default", of_self_and_other, lcm},
    {"aten.lgamma.default", of_self, in_f64<lgamma>},
    {"aten.polygamma.default", "n self", polygamma},
    {"aten.signbit.default", of_self, signbit},
    {"aten.special_bessel_j0.default", of_self, to_f32<bessel<0>>},
    {"aten.special_bessel_j1.default", of_self, to_f32<bessel<1>>},
    {"aten.special_i0e.default", of_self, to_f32<modified_bessel_scaled<0>>},
    {"aten.special_i1.default", of_self, to_f32<modified_bessel<1>>},
    {"aten.special_i1e.default", of_self, to_f32<modified_bessel_scaled<1>>},
    {"aten.special_ndtri.default", of_self, to_f32<ndtri>},
};

}  // namespace

std::span<const TorchOp> torch_special_ops() {
  return special_rows;
}

}  // namespace sylvite
