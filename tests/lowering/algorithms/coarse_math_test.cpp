#include "lowering/algorithms/coarse_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace sylvite::coarse_math_test {
namespace {

double silu(double x) {
  return x < -700 ? 0 : x / (1 + std::exp(-x));
}
double gelu(double x) {
  return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
}
double tanh_gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

struct Case {
  const char* name;
  Halide::Expr (*ours)(const Halide::Expr&);
  double (*exact)(double);
  double most;   ///< the relative error
  double least;  ///< the error is relative to the result, but to no less than this share of min(|x|, 1)
};

const std::vector<Case> cases = {
    {"silu", coarse_silu, silu, 0x1p-12, 0},
    {"gelu", [](const Halide::Expr& x) { return coarse_gelu(x, false); }, gelu, 0x1p-11, 0.5},
    {"gelu by tanh", [](const Halide::Expr& x) { return coarse_gelu(x, true); }, tanh_gelu, 0x1p-11, 0.5},
};

std::vector<float> samples() {
  std::vector<float> values = {0.0F,  -0.0F,  80.0F,  300.0F,  -300.0F,
                               3e38F, -3e38F, 1e-30F, -1e-30F, std::numeric_limits<float>::infinity()};
  for (int i = -7000; i <= 7000; ++i) values.push_back(static_cast<float>(i) * 0.0023F);
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  while (values.size() % 16 != 0) values.push_back(0.5F);
  return values;
}

std::vector<float> results_of(const Case& one, std::vector<float> values) {
  const Halide::Var d0("d0");
  const auto count = static_cast<int>(values.size());
  const Halide::Buffer<float> in(values.data(), count);
  Halide::Func f;
  f(d0) = one.ours(in(d0));
  f.vectorize(d0, 16);
  const Halide::Buffer<float> out = f.realize({count});
  return {out.begin(), out.begin() + count};
}

TEST(CoarseMath, IsRightInMoreDigitsThanBf16Has) {
  const std::vector<float> values = samples();
  for (const Case& one : cases) {
    const std::vector<float> results = results_of(one, values);
    double worst = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double x = values[i], expected = one.exact(x), actual = results[i];
      if (std::isnan(x) || std::isinf(x)) {
        EXPECT_TRUE(std::isnan(x) ? std::isnan(actual) : actual == x) << one.name << "(" << x << ")";
        continue;
      }
      const double scale = std::max(std::abs(expected), one.least * std::min(std::abs(x), 1.0));
      worst = std::max(worst, std::abs(actual - expected) / (scale + 1e-30));
    }
    EXPECT_LT(worst, one.most) << one.name;
  }
}

TEST(CoarseMath, PowersOfWhatIsNotPositive) {
  std::vector<float> values = {0.0F, -0.0F, -1e-30F, -87.0F, -90.0F, -3e38F};
  for (int i = 0; i <= 7000; ++i) values.push_back(static_cast<float>(i) * -0.0123F);
  values.push_back(-std::numeric_limits<float>::infinity());
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  while (values.size() % 16 != 0) values.push_back(-0.5F);
  const std::vector<float> results = results_of({"exp", coarse_exp_up_to_zero, nullptr, 0, 0}, values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    if (std::isnan(x))
      EXPECT_TRUE(std::isnan(results[i]));
    else if (x < -88)
      EXPECT_EQ(results[i], 0.0F) << x;
    else
      EXPECT_NEAR(results[i] / std::exp(x), 1, 0x1p-13) << x;
  }
}

}  // namespace
}  // namespace sylvite::coarse_math_test
