#include "lowering/plan/winograd.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "lowering/plan/packing.h"

namespace sylvite::winograd_test {
namespace {

std::vector<double> times(const Matrix& matrix, const std::vector<double>& vector) {
  std::vector<double> result;
  for (const std::vector<double>& row : matrix) {
    double sum = 0;
    for (std::size_t i = 0; i < row.size(); ++i) sum += row[i] * vector[i];
    result.push_back(sum);
  }
  return result;
}

Tensor random_filter(const Dims& dims) {
  Tensor filter(DType::f32, dims);
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> values(-1, 1);
  for (float& value : filter.mutable_view<float>()) value = values(generator);
  return filter;
}

TEST(Winograd, TransformsMakeAConvolution) {
  for (const int tile : {2, 4}) {
    const WinogradTransform& transform = winograd_transform(tile);
    ASSERT_EQ(transform.input.size(), static_cast<std::size_t>(transform.size()));
    const std::vector<double> taps = {0.3, -1.1, 0.7};
    std::vector<double> inputs;
    inputs.reserve(static_cast<std::size_t>(transform.size()));
    for (int i = 0; i < transform.size(); ++i) inputs.push_back(1.0 + 0.4 * i * (i % 3 - 1));
    const std::vector<double> left = times(transform.input, inputs);
    const std::vector<double> right = times(transform.filter, taps);
    std::vector<double> products;
    products.reserve(left.size());
    for (std::size_t i = 0; i < left.size(); ++i) products.push_back(left[i] * right[i]);
    const std::vector<double> outputs = times(transform.output, products);
    ASSERT_EQ(outputs.size(), static_cast<std::size_t>(tile));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const double expected = inputs[i] * taps[0] + inputs[i + 1] * taps[1] + inputs[i + 2] * taps[2];
      EXPECT_NEAR(outputs[i], expected, 1e-13) << tile;
    }
  }
}

TEST(Winograd, RowsAndColumnsComeInPairs) {
  for (const int tile : {2, 4}) {
    const WinogradTransform& transform = winograd_transform(tile);
    const auto size = static_cast<std::size_t>(transform.size());
    for (std::size_t k = 1; k + 1 < size; k += 2) {
      for (std::size_t i = 0; i < size; ++i)
        EXPECT_EQ(transform.input[k][i], (i % 2 == 0 ? 1 : -1) * transform.input[k + 1][i]);
      for (std::size_t i = 0; i < transform.output.size(); ++i)
        EXPECT_EQ(transform.output[i][k], (i % 2 == 0 ? 1 : -1) * transform.output[i][k + 1]);
    }
  }
}

TEST(Winograd, FiltersAreTransformedInDoubleAndRoundedOnce) {
  for (const int tile : {2, 4}) {
    const Matrix& g = winograd_transform(tile).filter;
    const Tensor filter = random_filter({5, 3, 3, 3});
    const Tensor transformed = transform_filter(filter, tile);
    const auto size = static_cast<std::int64_t>(g.size());
    ASSERT_EQ(transformed.dims(), (Dims{size, size, 5, 3}));
    for (std::int64_t at = 0; at < transformed.size(); ++at) {
      const auto row = static_cast<std::size_t>(at / 15 / size);
      const auto column = static_cast<std::size_t>(at / 15 % size);
      double sum = 0;
      for (std::int64_t tap = 0; tap < 9; ++tap) {
        sum += g[row][static_cast<std::size_t>(tap / 3)] * g[column][static_cast<std::size_t>(tap % 3)] *
               filter.as_double(at % 15 * 9 + tap);
      }
      EXPECT_NEAR(transformed.as_double(at), sum, 6.1e-8 * std::abs(sum) + 1e-15);
    }
  }
}

TEST(Winograd, PacksTransformedFilters) {
  const Tensor filter = random_filter({20, 6, 3, 3});
  const Packing packing = {{1, 1, 16, 1}, {4, 0, 2, 6, 5}, 4};
  const Tensor transformed = transform_filter(filter, 4);
  const Tensor packed = pack(filter, packing);
  ASSERT_EQ(packed.dims(), (Dims{2, 6, 6, 6, 16}));
  ASSERT_EQ(packing.packed_dims(filter.dims()), packed.dims());
  for (std::int64_t at = 0; at < packed.size(); ++at) {
    const std::int64_t out = at / 16 / 6 / 36 * 16 + at % 16;
    const std::int64_t in = at / 16 % 6;
    const std::int64_t place = at / 16 / 6 % 36;
    const double expected = out < 20 ? transformed.as_double((place * 20 + out) * 6 + in) : 0.0;
    ASSERT_EQ(packed.as_double(at), expected) << at;
  }
}

TEST(Winograd, LargeFiltersInParts) {
  const Tensor filter = random_filter({64, 256, 3, 3});
  const Tensor whole = transform_filter(filter, 4);
  Tensor last(DType::f32, {1, 1, 3, 3});
  for (std::int64_t tap = 0; tap < 9; ++tap) last.set_double(tap, filter.as_double(filter.size() - 9 + tap));
  const Tensor alone = transform_filter(last, 4);
  for (std::int64_t place = 0; place < 36; ++place)
    EXPECT_EQ(whole.as_double((place + 1) * 64 * 256 - 1), alone.as_double(place));
}

TEST(Winograd, EmptyFilters) {
  EXPECT_EQ(transform_filter(Tensor(DType::f32, {0, 4, 3, 3}), 2).dims(), (Dims{4, 4, 0, 4}));
}

TEST(Winograd, RefusesWhatItCannotTransform) {
  EXPECT_THROW((void)winograd_transform(3), UnsupportedError);
  EXPECT_THROW((void)transform_filter(random_filter({4, 4, 5, 5}), 2), UnsupportedError);
  EXPECT_THROW((void)transform_filter(random_filter({4, 9}), 2), UnsupportedError);
  EXPECT_THROW((void)transform_filter(Tensor(DType::f64, {4, 4, 3, 3}), 2), UnsupportedError);
}

}  // namespace
}  // namespace sylvite::winograd_test
