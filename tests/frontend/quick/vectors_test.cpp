// Loops compiled for each kind of vectors give what the functions of <cmath> give.

#include "frontend/quick/vectors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "frontend/quick/functions.h"

namespace sylvite::quick::vectors_test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// Numbers of all sizes, and in every seventh place a special one.
std::vector<float> numbers(std::int64_t count) {
  constexpr float special[] = {not_a_number, infinity, -infinity, -0.0F, 1e-40F, 88.7F, -103.9F, 200, -200};
  std::vector<float> x;
  for (std::int64_t i = 0; i < count; ++i)
    x.push_back(i % 7 == 3 ? special[i / 7 % 9] : 5 * std::sin(0.7F * static_cast<float>(i)));
  return x;
}

template <auto function>
void expect_as(double (*reference)(double), std::int64_t count) {
  for (const Vectors vectors : usable_vectors()) {
    const std::vector<float> x = numbers(count);
    std::vector<float> y(x.size());
    run_in(vectors, [&, from = x.data(), to = y.data()] {
      for (std::int64_t i = 0; i < count; ++i) to[i] = function(from[i]);
    });
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto wanted = static_cast<float>(reference(static_cast<double>(x[i])));
      if (std::isnan(wanted) || std::isinf(wanted))
        EXPECT_TRUE(std::isnan(wanted) ? std::isnan(y[i]) : y[i] == wanted) << x[i] << ": " << y[i];
      else
        EXPECT_NEAR(y[i], wanted, 2e-6 * std::max(1.0F, std::fabs(wanted))) << x[i];
    }
  }
}

TEST(QuickVectors, FunctionsAreTheSameInAllOfThem) {
  for (const std::int64_t count : {1, 7, 16, 67, 1000}) {
    expect_as<exp_of>([](double x) { return std::exp(x); }, count);
    expect_as<tanh_of>([](double x) { return std::tanh(x); }, count);
    expect_as<erf_of>([](double x) { return std::erf(x); }, count);
    expect_as<sigmoid_of>([](double x) { return 1 / (1 + std::exp(-x)); }, count);
  }
}

TEST(QuickVectors, FoldsOfRowsAreTheSameInAllOfThem) {
  for (const Vectors vectors : usable_vectors()) {
    for (const std::int64_t count : {3, 67, 5000}) {
      std::vector<float> x = numbers(count);
      float largest = 0;
      const auto fold = [&] { largest = fold_row(x.data(), count, -infinity, larger, larger); };
      run_in(vectors, fold);
      EXPECT_EQ(std::isnan(largest), count > 3);
      double sum = 0;
      for (float& each : x) {
        if (!std::isfinite(each) || each > 50) each = -infinity;
        sum += std::exp(static_cast<double>(each));
      }
      std::vector<float> y(x.size());
      run_in(vectors, [&] { softmax_row(x.data(), y.data(), count); });
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_NEAR(y[i], std::exp(static_cast<double>(x[i])) / sum, 1e-6) << x[i];
    }
  }
}

}  // namespace
}  // namespace sylvite::quick::vectors_test
