#include "lowering/algorithms/halide_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "lowering/algorithms/order_keys.h"

namespace sylvite::halide_math_test {
namespace {

using Halide::Expr;

struct Function {
  std::string name;
  Expr (*ours)(const Expr&);
  double (*exact)(double);
};

const std::vector<Function> functions = {
    {"exp", math_exp, [](double x) { return std::exp(x); }},
    {"exp up to zero", [](const Expr& x) { return math_exp_up_to_zero(Halide::select(x > 0.0F, -x, x)); },
     [](double x) { return std::abs(x) > 87 ? 0 : std::exp(-std::abs(x)); }},
    {"log", math_log, [](double x) { return std::log(x); }},
    {"log1p", math_log1p, [](double x) { return std::log1p(x); }},
    {"sin", math_sin, [](double x) { return std::sin(x); }},
    {"cos", math_cos, [](double x) { return std::cos(x); }},
    {"tan", math_tan, [](double x) { return std::tan(x); }},
    {"asin", math_asin, [](double x) { return std::asin(x); }},
    {"acos", math_acos, [](double x) { return std::acos(x); }},
    {"atan", math_atan, [](double x) { return std::atan(x); }},
    {"sinh", math_sinh, [](double x) { return std::sinh(x); }},
    {"cosh", math_cosh, [](double x) { return std::cosh(x); }},
    {"tanh", math_tanh, [](double x) { return std::tanh(x); }},
    {"asinh", math_asinh, [](double x) { return std::asinh(x); }},
    {"acosh", math_acosh, [](double x) { return std::acosh(x); }},
    {"atanh", math_atanh, [](double x) { return std::atanh(x); }},
    {"erf", math_erf, [](double x) { return std::erf(x); }},
    {"sqrt", math_sqrt, [](double x) { return std::sqrt(x); }},
    {"rsqrt", math_rsqrt, [](double x) { return 1 / std::sqrt(x); }},
    {"sigmoid", math_sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"silu", math_silu, [](double x) { return x / (1 + std::exp(-x)); }},
    {"softplus", math_softplus,
     [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }},
};

/// Specials, every power of two with both signs, and a fine grid where the functions bend.
std::vector<float> samples() {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {
      0.0F,    -0.0F,    infinity, -infinity, std::numeric_limits<float>::quiet_NaN(),
      3.4e38F, -3.4e38F, 88.7228F, 88.73F,    -87.4F,
      -103.0F, -104.5F,  1.0F,     -1.0F,     1.0000001F};
  for (int e = -140; e < 128; ++e) {
    for (const float m : {1.0F, 1.3F, 1.7F}) {
      values.push_back(std::ldexp(m, e));
      values.push_back(-std::ldexp(m, e));
    }
  }
  for (int i = -4000; i <= 4000; ++i) values.push_back(static_cast<float>(i) * 0.0037F);
  while (values.size() % 16 != 0) values.push_back(0.5F);
  return values;
}

/// "" when close enough. The absolute floor stands for subnormals and for the roots of sin, cos and log.
bool is_close(double expected, float actual, float x, const std::string& name) {
  if (std::isnan(expected)) return std::isnan(actual);
  const auto rounded = static_cast<float>(expected);
  if (std::isinf(rounded)) return actual == rounded || std::abs(expected) < 3.5e38;
  const bool is_periodic = name == "sin" || name == "cos" || name == "tan";
  if (is_periodic && std::abs(x) > 3e9F) return std::isfinite(actual);
  const double floor = is_periodic ? 2e-7 : 1e-38;
  const double scale = name == "tan" ? std::abs(expected) * (1 + std::abs(expected)) : std::abs(expected);
  return std::abs(expected - actual) <= 2.5e-6 * scale + floor;
}

/// Every function of every value, `lanes` at a time.
Halide::Realization results_of(std::vector<float>& values, int lanes) {
  const Halide::Var d0("d0");
  Halide::Buffer<float> in(values.data(), static_cast<int>(values.size()));
  std::vector<Halide::Func> outputs;
  for (const Function& function : functions) {
    Halide::Func f(function.name);
    f(d0) = function.ours(in(d0));
    if (lanes > 1) f.vectorize(d0, lanes);
    outputs.push_back(f);
  }
  return Halide::Pipeline(outputs).realize({static_cast<int>(values.size())});
}

TEST(HalideMath, AgreesWithLibmEverywhere) {
  std::vector<float> values = samples();
  const Halide::Realization results = results_of(values, 16);
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Halide::Buffer<float> result = results[i];
    int wrong = 0;
    for (std::size_t k = 0; k < values.size() && wrong < 5; ++k) {
      const double expected = functions[i].exact(values[k]);
      const float actual = result(static_cast<int>(k));
      if (!is_close(expected, actual, values[k], functions[i].name)) {
        ADD_FAILURE() << functions[i].name << "(" << values[k] << ") = " << actual << ", expected "
                      << expected;
        ++wrong;
      }
    }
  }
}

TEST(HalideMath, RoundsAlikeInVectorsAndAlone) {
  std::vector<float> values = samples();
  const Halide::Realization vectors = results_of(values, 16);
  const Halide::Realization alone = results_of(values, 1);
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Halide::Buffer<float> a = vectors[i];
    const Halide::Buffer<float> b = alone[i];
    int different = 0;
    for (int k = 0; k < a.width(); ++k) different += a(k) != b(k) && !(std::isnan(a(k)) && std::isnan(b(k)));
    EXPECT_EQ(different, 0) << functions[i].name;
  }
}

TEST(HalideMath, PowersAgreeWithLibm) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> exponents = {0.0F,        -0.0F,       1.0F,     -1.0F,     2.0F, 5.0F,  -3.0F,  0.5F,
                                  -0.5F,       0.75F,       1.0F / 3, 2.5F,      7.3F, -6.1F, 126.5F, 1e-7F,
                                  16777215.0F, 16777216.0F, infinity, -infinity, nan,  1e30F};
  std::vector<float> bases = samples();
  const auto count = static_cast<int>(bases.size());
  const Halide::Var d0("d0");
  const Halide::Var d1("d1");
  Halide::Buffer<float> x(bases.data(), count);
  Halide::Buffer<float> y(exponents.data(), static_cast<int>(exponents.size()));
  const auto results = [&](int lanes) -> Halide::Buffer<float> {
    Halide::Func f("pow");
    f(d0, d1) = math_pow(x(d0), y(d1));
    if (lanes > 1) f.vectorize(d0, lanes);
    return f.realize({count, y.width()});
  };
  const Halide::Buffer<float> vectors = results(16);
  const Halide::Buffer<float> alone = results(1);
  int wrong = 0;
  for (int k = 0; k < y.width(); ++k) {
    for (int i = 0; i < count && wrong < 20; ++i) {
      const double exact = std::pow(static_cast<double>(x(i)), static_cast<double>(y(k)));
      const auto expected = static_cast<float>(exact);
      const float actual = vectors(i, k);
      const bool is_alike = std::isnan(actual) ? std::isnan(alone(i, k)) : actual == alone(i, k);
      const bool is_close =
          std::isnan(expected) ? std::isnan(actual)
          : expected == 0 || std::isinf(expected)
              ? actual == expected && std::signbit(actual) == std::signbit(expected)
              : std::abs(actual - exact) <=
                    0.51 * (std::nextafter(std::abs(expected), infinity) - std::abs(expected));
      if (is_alike && is_close) continue;
      ADD_FAILURE() << "pow(" << x(i) << ", " << y(k) << ") = " << actual << " and " << alone(i, k)
                    << ", expected " << expected;
      ++wrong;
    }
  }
}

/// Those of a device by quarters are products of roots, which a CPU computes as well.
TEST(HalideMath, PowersByQuartersAreRootsOnADevice) {
  std::vector<float> bases = samples();
  const auto count = static_cast<int>(bases.size());
  Halide::Buffer<float> x(bases.data(), count);
  const Halide::Var d0("d0");
  for (const float exponent : {0.25F, 0.5F, 0.75F, 1.25F, 1.5F, 1.75F, -0.25F, -0.5F, -0.75F, -1.75F}) {
    Halide::Func f("pow");
    {
      const DeviceMath device;
      f(d0) = math_pow(x(d0), Halide::Expr(exponent));
    }
    const Halide::Buffer<float> made = f.realize({count});
    for (int i = 0; i < count; ++i) {
      const auto wanted = static_cast<float>(std::pow(static_cast<double>(x(i)), exponent));
      const bool is_close = std::isnan(wanted)   ? std::isnan(made(i))
                            : std::isinf(wanted) ? made(i) == wanted
                                                 : std::abs(made(i) - wanted) <= 5e-7F * wanted + 1e-37F;
      EXPECT_TRUE(is_close) << "pow(" << x(i) << ", " << exponent << ") = " << made(i) << ", expected "
                            << wanted;
    }
  }
}

TEST(HalideMath, RemaindersAreExact) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> divisors = {
      0.0F,  -0.0F, 1.0F,  -1.0F,  3.0F,     0.1F,      6.2831855F,  1e-45F,
      1e-3F, 7e37F, -5e9F, 1e-38F, infinity, -infinity, 16777215.0F, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> dividends = samples();
  for (int i = 1; i < 300; ++i)
    for (const float divisor : {3.0F, 0.1F, 6.2831855F, 16777215.0F})
      for (const float times : {static_cast<float>(i), static_cast<float>(i) * 104729.0F})
        for (const float x : {divisor * times, std::nextafter(divisor * times, 0.0F)}) dividends.push_back(x);
  const auto count = static_cast<int>(dividends.size());
  const Halide::Var d0("d0");
  const Halide::Var d1("d1");
  Halide::Buffer<float> x(dividends.data(), count);
  Halide::Buffer<float> y(divisors.data(), static_cast<int>(divisors.size()));
  for (const int lanes : {16, 1}) {
    Halide::Func f("fmod");
    f(d0, d1) = math_fmod(x(d0), y(d1));
    if (lanes > 1) f.vectorize(d0, lanes);
    const Halide::Buffer<float> found = f.realize({count, y.width()});
    int wrong = 0;
    for (int k = 0; k < y.width(); ++k)
      for (int i = 0; i < count && wrong < 20; ++i) {
        const float expected = std::fmod(x(i), y(k));
        const bool is_alike = std::isnan(expected) ? std::isnan(found(i, k))
                                                   : expected == found(i, k) &&
                                                         std::signbit(expected) == std::signbit(found(i, k));
        if (is_alike) continue;
        ADD_FAILURE() << "fmod(" << x(i) << ", " << y(k) << ") = " << found(i, k) << ", expected "
                      << expected;
        ++wrong;
      }
  }
}

TEST(HalideMath, OrderKeysKeepTheOrderAndLetNaNWin) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  Halide::Buffer<float> in(6);
  const std::vector<float> ascending = {-infinity, -2.5F, -0.0F, 0.0F, 1e-30F, infinity};
  for (int i = 0; i < 6; ++i) in(i) = ascending[static_cast<std::size_t>(i)];
  const Halide::Var d0("d0");
  Halide::Func key("key");
  Halide::Func back("back");
  key(d0) = order_key(in(d0), true);
  back(d0) = from_order_key(key(d0), Halide::Float(32));
  const Halide::Realization results = Halide::Pipeline({key, back}).realize({6});
  const Halide::Buffer<int> keys = results[0];
  const Halide::Buffer<float> values = results[1];
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(i == 0 || keys(i - 1) < keys(i));
    EXPECT_EQ(values(i), in(i));
  }
  for (const float x : {nan, -nan}) {
    in.fill(x);
    const Halide::Buffer<int> largest = Halide::Func(key).realize({1});
    EXPECT_EQ(largest(0), std::numeric_limits<int>::max());
  }
}

}  // namespace
}  // namespace sylvite::halide_math_test
