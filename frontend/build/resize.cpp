#include "frontend/build/resize.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"

namespace sylvite {
namespace {

/// The coordinate in the input that output element `i` stands at.
double source_position(const ResizeRule& rule, const ResizeAxis& axis, double i) {
  const auto from = static_cast<double>(axis.from);
  const double to = axis.scale * from;
  if (rule.transform == "asymmetric") return i / axis.scale;
  if (rule.transform == "align_corners") return to == 1 ? 0 : i * (from - 1) / (to - 1);
  if (rule.transform == "pytorch_half_pixel" && to == 1) return -0.5;
  if (rule.transform == "tf_crop_and_resize") {
    const double width = (axis.roi_end - axis.roi_start) * (from - 1);
    return axis.roi_start * (from - 1) + (to == 1 ? width / 2 : i * width / (to - 1));
  }
  const double half_pixel = (i + 0.5) / axis.scale - 0.5;
  if (rule.transform == "half_pixel_symmetric")
    return from / 2 * (1 - static_cast<double>(axis.to) / to) + half_pixel;
  if (rule.transform == "half_pixel" || rule.transform == "pytorch_half_pixel") return half_pixel;
  throw ModelError("coordinate_transformation_mode '{}' is unknown", rule.transform);
}

double cubic_kernel(double d, double a) {
  d = std::abs(d);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

std::int64_t nearest_index(const ResizeRule& rule, double position) {
  const double below = std::floor(position);
  const double t = position - below;
  const auto base = static_cast<std::int64_t>(below);
  if (t == 0 || rule.nearest_mode == "floor") return base;
  if (rule.nearest_mode == "ceil") return base + 1;
  if (rule.nearest_mode == "round_prefer_floor") return t <= 0.5 ? base : base + 1;
  if (rule.nearest_mode == "round_prefer_ceil") return t < 0.5 ? base : base + 1;
  throw ModelError("nearest_mode '{}' is unknown", rule.nearest_mode);
}

/// Adds the weights of one output element to its row over the inputs; elements beyond the ends count as the
/// ends.
void fill_row(const ResizeRule& rule, const ResizeAxis& axis, double position, std::span<double> row) {
  const auto last = axis.from - 1;
  const auto at = [&](std::int64_t i) -> double& {
    return row[static_cast<std::size_t>(std::clamp<std::int64_t>(i, 0, last))];
  };
  const double stretch = rule.is_antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = (rule.mode == "linear" ? 1 : 2) / stretch;
  const auto first = static_cast<std::int64_t>(std::floor(position - reach)) + 1;
  const auto end = static_cast<std::int64_t>(std::ceil(position + reach));
  double total = 0;
  for (std::int64_t i = first; i < std::max(end, first + 1); ++i) {
    const double d = (static_cast<double>(i) - position) * stretch;
    const double weight =
        rule.mode == "linear" ? std::max(1 - std::abs(d), 0.0) : cubic_kernel(d, rule.cubic_a);
    if (rule.excludes_outside && (i < 0 || i > last)) continue;
    at(i) += weight;
    total += weight;
  }
  for (double& weight : row) weight /= total;
}

/// The inputs that each output element is a weighted sum of: `count` of them for each.
struct Taps {
  std::int64_t count = 0;
  std::vector<std::int64_t> inputs;  ///< [count][to]
  std::vector<double> weights;
};

/// The entries of `matrix` [to, from] that are not zero. Rows that have fewer repeat their first input with
/// weight 0, which reads nothing that the row does not read anyway.
Taps taps_of(std::span<const double> matrix, const ResizeAxis& size) {
  const auto from = static_cast<std::size_t>(size.from);
  const auto to = static_cast<std::size_t>(size.to);
  std::vector<std::vector<std::size_t>> used(to);
  std::size_t count = 1;
  for (std::size_t i = 0; i < to; ++i) {
    for (std::size_t j = 0; j < from; ++j)
      if (matrix[i * from + j] != 0) used[i].push_back(j);
    count = std::max(count, used[i].size());
  }
  Taps taps;
  taps.count = static_cast<std::int64_t>(count);
  for (std::size_t t = 0; t < count; ++t) {
    for (std::size_t i = 0; i < to; ++i) {
      const bool is_used = t < used[i].size();
      const std::size_t input = is_used ? used[i][t] : used[i].empty() ? 0 : used[i].front();
      taps.inputs.push_back(static_cast<std::int64_t>(input));
      taps.weights.push_back(is_used ? matrix[i * from + input] : 0);
    }
  }
  return taps;
}

/// Sums of neighbours, so that a NaN or an infinity stays where ONNX has it: a product with the matrix would
/// spread it over the whole axis.
Sym sum_of_taps(Sym x, int axis, const Taps& taps, std::int64_t to) {
  GraphBuilder& b = x.builder();
  Dims dims(static_cast<std::size_t>(x.rank()), 1);
  dims[static_cast<std::size_t>(axis)] = to;
  Sym sum;
  for (std::int64_t t = 0; t < taps.count; ++t) {
    const auto first = static_cast<std::ptrdiff_t>(t * to);
    const auto last = first + static_cast<std::ptrdiff_t>(to);
    const std::vector<std::int64_t> inputs(taps.inputs.begin() + first, taps.inputs.begin() + last);
    const std::vector<double> weights(taps.weights.begin() + first, taps.weights.begin() + last);
    const Sym part = gather(x, b.integers(inputs), axis) * b.reals(x.dtype(), dims, weights);
    sum = t == 0 ? part : sum + part;
  }
  return sum;
}

/// For the many neighbours of an antialiasing filter.
Sym product_with_matrix(Sym x, int axis, const std::vector<double>& matrix, const ResizeAxis& size) {
  Dims dims = x.dims();
  const std::int64_t outer = checked_product(Dims(dims.begin(), dims.begin() + axis), "resize");
  const std::int64_t inner = checked_product(Dims(dims.begin() + axis + 1, dims.end()), "resize");
  const Sym weights = x.builder().reals(x.dtype(), {size.to, size.from}, matrix);
  const Sym flat = reshape(x, {outer, size.from, inner});
  dims[static_cast<std::size_t>(axis)] = size.to;
  return reshape(inner == 1 ? matmul(reshape(flat, {outer, size.from}), swap_axes(weights, 0, 1))
                            : matmul(weights, flat),
                 dims);
}

/// What `matrix` [to, from] makes of one axis. Sums are made in f32 or wider.
Sym interpolate_axis(Sym x, int axis, const std::vector<double>& matrix, const ResizeAxis& size) {
  constexpr std::int64_t most_taps = 4;  // of linear and cubic interpolation
  const DType dtype = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Taps taps = taps_of(matrix, size);
  const Sym wide = cast(x, dtype);
  const Sym y = taps.count <= most_taps ? sum_of_taps(wide, axis, taps, size.to)
                                        : product_with_matrix(wide, axis, matrix, size);
  return cast(is_float(x.dtype()) ? y : apply(Op::round, y), x.dtype());
}

}  // namespace

Sym resize_axis(Sym x, int axis, const ResizeRule& rule, const ResizeAxis& size) {
  if (size.from < 1 || size.to < 0)
    throw UnsupportedError("an axis is resized from {} to {} elements", size.from, size.to);
  // Few inputs make a small table, but each output's neighbours take time to find.
  x.builder().reserve_table({2, rule.mode == "nearest" ? 2 : std::max<std::int64_t>(size.from, 4), size.to});
  const bool has_roi = rule.transform == "tf_crop_and_resize" && (size.roi_start != 0 || size.roi_end != 1);
  if (size.from == size.to && size.scale == 1 && !has_roi) return x;
  const bool is_cropped = rule.transform == "tf_crop_and_resize";
  const bool is_nearest = rule.mode == "nearest";
  std::vector<double> matrix(is_nearest ? 0 : static_cast<std::size_t>(size.to * size.from), 0);
  std::vector<double> outside;
  std::vector<std::int64_t> nearest;
  bool is_extrapolated = false;
  for (std::int64_t i = 0; i < size.to; ++i) {
    const double position = source_position(rule, size, static_cast<double>(i));
    if (!(std::abs(position) <= 1e15))
      throw ModelError("element {} of axis {} stands at {} of the input", i, axis, position);
    if (is_cropped) {
      const bool is_outside = position < 0 || position > static_cast<double>(size.from - 1);
      is_extrapolated = is_extrapolated || is_outside;
      outside.push_back(is_outside ? 1 : 0);
    }
    if (is_nearest) {
      nearest.push_back(std::clamp<std::int64_t>(nearest_index(rule, position), 0, size.from - 1));
    } else {
      const auto row = static_cast<std::size_t>(i * size.from);
      fill_row(rule, size, position, std::span(matrix).subspan(row, static_cast<std::size_t>(size.from)));
    }
  }
  GraphBuilder& b = x.builder();
  const Sym y = is_nearest ? gather(x, b.integers(nearest), axis) : interpolate_axis(x, axis, matrix, size);
  if (!is_extrapolated) return y;
  Dims mask_dims(static_cast<std::size_t>(x.rank()), 1);
  mask_dims[static_cast<std::size_t>(axis)] = size.to;
  const Sym mask = cast(b.reals(DType::f32, mask_dims, outside), DType::boolean);
  return where(mask, rule.extrapolation, y);
}

}  // namespace sylvite
