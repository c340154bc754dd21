#include "lowering/algorithms/coarse_math.h"

#include <vector>

#include "lowering/algorithms/halide_math.h"

namespace sylvite {
namespace {

using Halide::Expr;

/// Highest power first.
Expr coarse_polynomial(const Expr& x, const std::vector<float>& coefficients) {
  Expr sum = coefficients.front();
  for (std::size_t i = 1; i < coefficients.size(); ++i) sum = sum * x + coefficients[i];
  return sum;
}

/// exp of -88 <= x <= 0: 2^n e^f, the latter by our minimax fit. 0 at the lower end. f comes from x itself
/// and not from x log2(e), which would be one more product: as it stands, each line is one instruction.
Expr exp_within(const Expr& x) {
  constexpr float log2_e = 1.44269504F;
  constexpr float ln_2 = 0.693147181F;
  constexpr float rounder = 12582912.0F + 127.0F;  // no place for a fraction, and a biased exponent
  const Expr rounded = x * log2_e + rounder;
  const Expr n = strict_sub(rounded, Expr(rounder));
  const Expr f = n * -ln_2 + x;  // within ln(2) / 2; relative error of p 8e-5
  const Expr p = coarse_polynomial(f, {0.165668400F, 0.504963332F, 1.00016416F, 0.999928057F});
  return p * Halide::reinterpret<float>(Halide::reinterpret<std::uint32_t>(rounded) << 23);
}

}  // namespace

Expr coarse_exp_up_to_zero(const Expr& x) {
  constexpr float least = -88.0F;
  return exp_within(Halide::select(strict_less(x, Expr(least)), least, x));
}

Expr coarse_silu(const Expr& x) {
  // As number_sigmoid in halide_math.cpp: e = exp(-|x|) = 2^n 2^f, then 1 / (1 + e), by our minimax fit.
  const Expr bits = Halide::reinterpret<std::uint32_t>(x);
  const Expr size = Halide::min(
      Halide::reinterpret<float>(bits & Halide::Internal::make_const(Halide::UInt(32), 0x7fffffffU)), 88.0F);
  const Expr e = exp_within(-size);
  const Expr of_size =  // relative error 5e-5
      coarse_polynomial(
          e, {-0.1044842F, 0.417937458F, -0.770572901F, 0.953420937F, -0.996275783F, 0.999948978F});
  return strict_mul(x, Halide::select(Halide::reinterpret<int>(x) < 0, e * of_size, of_size));
}

Expr coarse_gelu(const Expr& x, bool by_tanh) {
  // x / 2 (1 + T(x)): T is odd and reaches 1 at 4; it is x P(x^2), P our minimax fit, whose argument is
  // scaled to [-1, 1] and whose coefficients add up to 1/4 in this order.
  constexpr float end = 4.0F;
  const Expr inside = Halide::clamp(x, -end, end);
  const Expr s = inside * inside * (2.0F / (end * end)) - 1.0F;
  const std::vector<float> of_tanh = {0.00285903248F, -0.00854796264F, 0.013459716F,
                                      -0.0231246762F, 0.0437186919F,   -0.073413372F,
                                      0.11184606F,    -0.168808296F,   0.352010816F};
  const std::vector<float> of_erf = {0.00236118608F, -0.00747958664F, 0.0130839562F,
                                     -0.0238336623F, 0.0446152166F,   -0.073961392F,
                                     0.111946441F,   -0.168628857F,   0.351896703F};
  const Expr gate = coarse_polynomial(s, by_tanh ? of_tanh : of_erf) * inside + 1.0F;
  return strict_mul(strict_mul(x, Expr(0.5F)), gate);
}

}  // namespace sylvite
