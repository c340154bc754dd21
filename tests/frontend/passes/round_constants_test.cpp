#include "frontend/passes/round_constants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "frontend/values/half.h"

namespace sylvite::round_constants_test {
namespace {

Tensor random_filters(const Dims& dims) {
  std::mt19937 generator(7);
  std::normal_distribution<float> normal(0.0F, 0.1F);
  Tensor result(DType::f32, dims);
  for (std::int64_t i = 0; i < result.size(); ++i) result.set_double(i, normal(generator));
  return result;
}

/// Of tap 0 of each filter [channels, taps]: the square of the errors' sum over channels, summed over
/// filters.
double squares_of_sums(const Tensor& exact, const Tensor& rounded) {
  const Dims& dims = exact.dims();
  const std::int64_t taps = exact.size() / dims[0] / dims[1];
  double squares = 0;
  for (std::int64_t filter = 0; filter < dims[0]; ++filter) {
    double sum = 0;
    for (std::int64_t channel = 0; channel < dims[1]; ++channel) {
      const std::int64_t at = (filter * dims[1] + channel) * taps;
      sum += rounded.as_double(at) - exact.as_double(at);
    }
    squares += sum * sum;
  }
  return squares;
}

double squares_of_errors(const Tensor& exact, const Tensor& rounded) {
  double sum = 0;
  for (std::int64_t i = 0; i < exact.size(); ++i)
    sum += std::pow(rounded.as_double(i) - exact.as_double(i), 2);
  return sum;
}

TEST(RoundConstants, SumsOfFiltersAreNearlyKept) {
  const Tensor filters = random_filters({24, 512, 3, 3});
  const Tensor nearest = rounded(filters, DType::bf16);
  const Tensor kept = rounded_filters(filters);
  EXPECT_LT(squares_of_sums(filters, kept), 0.1 * squares_of_sums(filters, nearest));
  EXPECT_LT(squares_of_errors(filters, kept), 1.04 * squares_of_errors(filters, nearest));
}

// Few numbers are not rounded to the nearest, and those to their other neighbour.
TEST(RoundConstants, FiltersBecomeNeighbours) {
  const Tensor filters = random_filters({16, 64, 1, 1});
  const Tensor kept = rounded_filters(filters);
  std::int64_t turned = 0;
  for (std::int64_t i = 0; i < filters.size(); ++i) {
    const double exact = filters.as_double(i);
    const auto nearest = static_cast<double>(BFloat16(exact));
    const double step = std::ldexp(1.0, std::ilogb(exact) - 7);
    if (kept.as_double(i) == nearest) continue;
    ++turned;
    EXPECT_LE(std::fabs(kept.as_double(i) - exact), 0.65 * step) << i;
    EXPECT_LE(std::fabs(kept.as_double(i) - nearest), step) << i;
  }
  EXPECT_GT(turned, 0);
  EXPECT_LT(turned, filters.size() * 6 / 100);
}

TEST(RoundConstants, FiltersKeepSpecialValuesAndStayFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float largest = std::numeric_limits<float>::max();
  const float given[] = {infinity, 1.0F, std::nanf(""), 1 + 0x1p-8F, -infinity, -0.0F, largest, 0x1p-140F};
  Tensor filters(DType::f32, {1, 8, 1});
  for (std::int64_t i = 0; i < 8; ++i) filters.set_double(i, given[i]);
  const Tensor kept = rounded_filters(filters);
  EXPECT_EQ(kept.as_double(0), infinity);
  EXPECT_EQ(kept.as_double(1), 1);
  EXPECT_TRUE(std::isnan(kept.as_double(2)));
  EXPECT_EQ(kept.as_double(3), 1);
  EXPECT_EQ(kept.as_double(4), -infinity);
  EXPECT_TRUE(std::signbit(kept.as_double(5)));
  EXPECT_EQ(kept.as_double(6), 0x1.fep127);
  EXPECT_NEAR(kept.as_double(7), 0x1p-140, 0x1p-133);
}

TEST(RoundConstants, NoFiltersAreNone) {
  EXPECT_EQ(rounded_filters(Tensor(DType::f32, {0, 4, 3, 3})).size(), 0);
  EXPECT_EQ(rounded_filters(Tensor(DType::f32, {4, 0, 3, 3})).size(), 0);
}

}  // namespace
}  // namespace sylvite::round_constants_test
