#include "lowering/plan/winograd.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/parts.h"

namespace sylvite {
namespace {

/// For four outputs these points lose least among pairs of short fractions: an error like that of summing the
/// products directly. The customary 1 and 2 lose four times as much.
const std::vector<double>& pairs_of(int tile) {
  static const std::vector<double> two = {1.0};
  static const std::vector<double> four = {0.625, 1.5};
  if (tile == 2) return two;
  if (tile == 4) return four;
  throw UnsupportedError("Winograd tiles have 2 or 4 outputs along a side, not {}", tile);
}

/// Coefficients, lowest first, of the product of (x - point) over all points but number `skipped`.
std::vector<double> polynomial(const std::vector<double>& points, std::size_t skipped) {
  std::vector<double> product = {1.0};
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i == skipped) continue;
    std::vector<double> next(product.size() + 1, 0.0);
    for (std::size_t power = 0; power < product.size(); ++power) {
      next[power] -= product[power] * points[i];
      next[power + 1] += product[power];
    }
    product = std::move(next);
  }
  return product;
}

WinogradTransform make_transform(int tile) {
  std::vector<double> points = {0.0};
  for (const double a : pairs_of(tile)) points.insert(points.end(), {a, -a});
  const std::size_t size = points.size() + 1;
  WinogradTransform made{tile, Matrix(size, std::vector<double>(size, 0.0)), Matrix(size, {0.0, 0.0, 0.0}),
                         Matrix(static_cast<std::size_t>(tile), std::vector<double>(size, 0.0))};
  for (std::size_t k = 0; k + 1 < size; ++k) {
    const std::vector<double> row = polynomial(points, k);
    std::copy(row.begin(), row.end(), made.input[k].begin());
    double at_point = 0;  // the polynomial's value there: what the filter's row is divided by
    for (std::size_t power = row.size(); power-- > 0;) at_point = at_point * points[k] + row[power];
    for (std::size_t tap = 0; tap < 3; ++tap)
      made.filter[k][tap] = std::pow(points[k], static_cast<double>(tap)) / at_point;
    for (std::size_t i = 0; i < made.output.size(); ++i)
      made.output[i][k] = std::pow(points[k], static_cast<double>(i));
  }
  made.input.back() = polynomial(points, size);
  made.filter.back()[2] = 1.0;
  made.output.back().back() = 1.0;
  return made;
}

/// Filters that are transformed side by side, so that the compiler makes vectors of them.
constexpr std::int64_t group = 16;
using Lanes = std::array<double, group>;

/// sum = a * x + b * y + c * z, with the factors of a row of the filter's matrix.
void combine(const std::vector<double>& factors, const Lanes& x, const Lanes& y, const Lanes& z, Lanes& sum) {
  const double a = factors[0];
  const double b = factors[1];
  const double c = factors[2];
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = a * x[i] + b * y[i] + c * z[i];
}

/// Transforms `count` filters, at most a group. Element (row, column) of filter i goes to
/// to[(row * n + column) * plane + i].
void transform_group(const Matrix& g, const float* from, std::int64_t count, float* to, std::int64_t plane) {
  std::array<Lanes, 9> taps{};
  for (std::int64_t i = 0; i < count; ++i)
    for (std::size_t tap = 0; tap < taps.size(); ++tap)
      taps[tap][static_cast<std::size_t>(i)] =
          static_cast<double>(from[9 * i + static_cast<std::int64_t>(tap)]);
  for (const std::vector<double>& row : g) {
    std::array<Lanes, 3> across{};
    for (std::size_t tap = 0; tap < 3; ++tap)
      combine(row, taps[tap], taps[3 + tap], taps[6 + tap], across[tap]);
    for (const std::vector<double>& column : g) {
      Lanes sums;
      combine(column, across[0], across[1], across[2], sums);
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(sums[static_cast<std::size_t>(i)]);
      to += plane;
    }
  }
}

}  // namespace

const WinogradTransform& winograd_transform(int tile) {
  static const WinogradTransform two = make_transform(2);
  static const WinogradTransform four = make_transform(4);
  if (tile != 2 && tile != 4) (void)pairs_of(tile);
  return tile == 2 ? two : four;
}

Dims transformed_filter_dims(const Dims& filter, int tile) {
  if (filter.size() != 4 || filter[2] != 3 || filter[3] != 3) {
    throw UnsupportedError("Winograd's transform takes filters of 3 x 3, got a weight {}",
                           make_type(DType::f32, filter).to_string());
  }
  const std::int64_t size = winograd_transform(tile).size();
  return {size, size, filter[0], filter[1]};
}

Tensor transform_filter(const Tensor& filter, int tile) {
  Tensor result(DType::f32, transformed_filter_dims(filter.dims(), tile));
  if (filter.dtype() != DType::f32)
    throw UnsupportedError("Winograd's transform takes f32 filters, got {}", dtype_name(filter.dtype()));
  const Matrix& g = winograd_transform(tile).filter;
  const std::int64_t count = filter.dims()[0] * filter.dims()[1];
  const auto* from = static_cast<const float*>(filter.data());
  auto* to = static_cast<float*>(result.mutable_data());
  for_parts(count, result.byte_size(), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += group)
      transform_group(g, from + 9 * i, std::min(group, end - i), to + i, count);
  });
  return result;
}

}  // namespace sylvite
