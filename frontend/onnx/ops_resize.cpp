// Resizing and sampling of maps.

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "base/error.h"
#include "frontend/onnx/ops.h"
#include "frontend/onnx/sampling.h"

namespace sylvite {
namespace {

/// Everything Resize says that holds for all axes.
struct ResizeRule {
  std::string mode = "nearest", transform = "half_pixel", nearest_mode = "round_prefer_floor";
  double cubic_a = -0.75, extrapolation = 0;
  bool is_antialias = false, excludes_outside = false;
};

struct ResizeAxis {
  std::int64_t from = 0, to = 0;
  double scale = 1, roi_start = 0, roi_end = 1;
};

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

/// Resizes one axis: a weighted sum, or a gather for nearest neighbours.
Sym resize_axis(Sym x, int axis, const ResizeRule& rule, const ResizeAxis& size) {
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

/// The extents that sizes ask for, under the policy that keeps the aspect ratio.
void apply_sizes(ImportContext& c, const std::vector<std::int64_t>& sizes, const std::vector<int>& axes,
                 std::vector<ResizeAxis>& all) {
  if (sizes.size() != axes.size())
    throw ModelError("{} sizes are given for {} axes", sizes.size(), axes.size());
  const std::string policy = c.string("keep_aspect_ratio_policy", "stretch");
  double common = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = all[static_cast<std::size_t>(axes[i])];
    axis.to = sizes[i];
    axis.scale = static_cast<double>(sizes[i]) / static_cast<double>(axis.from);
    if (i == 0) common = axis.scale;
    common = policy == "not_larger" ? std::min(common, axis.scale) : std::max(common, axis.scale);
  }
  if (policy == "stretch") return;
  for (const int a : axes) {
    ResizeAxis& axis = all[static_cast<std::size_t>(a)];
    axis.scale = common;
    const double to = common * static_cast<double>(axis.from) + 0.5;
    if (!(to >= 0 && to < 1e12)) throw ModelError("sizes scale {} elements by {}", axis.from, common);
    axis.to = static_cast<std::int64_t>(to);
  }
}

void apply_scales(const std::vector<double>& scales, const std::vector<int>& axes,
                  std::vector<ResizeAxis>& all) {
  if (scales.size() != axes.size())
    throw ModelError("{} scales are given for {} axes", scales.size(), axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = all[static_cast<std::size_t>(axes[i])];
    const double to = std::floor(static_cast<double>(axis.from) * scales[i]);
    if (!(scales[i] > 0) || !(to < 1e12)) throw ModelError("scale {} is out of range", scales[i]);
    axis.scale = scales[i];
    axis.to = static_cast<std::int64_t>(to);
  }
}

void resize_axes(ImportContext& c, const ResizeRule& rule, const std::vector<ResizeAxis>& all) {
  Sym x = c.input(0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ResizeAxis& axis = all[i];
    if (axis.from < 1 || axis.to < 0)
      throw UnsupportedError("an axis is resized from {} to {} elements", axis.from, axis.to);
    // Few inputs make a small table, but each output's neighbours take time to find.
    x.builder().reserve_table(
        {2, rule.mode == "nearest" ? 2 : std::max<std::int64_t>(axis.from, 4), axis.to});
    const bool has_roi = rule.transform == "tf_crop_and_resize" && (axis.roi_start != 0 || axis.roi_end != 1);
    if (axis.from == axis.to && axis.scale == 1 && !has_roi) continue;
    x = resize_axis(x, static_cast<int>(i), rule, axis);
  }
  c.output(x);
}

std::vector<ResizeAxis> unchanged_axes(Sym x) {
  std::vector<ResizeAxis> axes;
  for (const std::int64_t extent : x.dims()) axes.push_back({extent, extent, 1, 0, 1});
  return axes;
}

/// Inputs: X, roi, scales, sizes.
void resize(ImportContext& c) {
  const Sym x = c.input(0);
  ResizeRule rule;
  rule.mode = c.string("mode", "nearest");
  rule.transform = c.string("coordinate_transformation_mode", "half_pixel");
  rule.nearest_mode = c.string("nearest_mode", "round_prefer_floor");
  rule.cubic_a = c.real("cubic_coeff_a", -0.75);
  rule.extrapolation = c.real("extrapolation_value", 0);
  rule.is_antialias = c.integer("antialias", 0) != 0;
  rule.excludes_outside = c.integer("exclude_outside", 0) != 0;
  std::vector<int> axes;
  for (const std::int64_t axis : c.has_attribute("axes") ? c.integers("axes") : all_axes(x.rank()))
    axes.push_back(normalize_axis(axis, x.rank()));
  std::vector<ResizeAxis> all = unchanged_axes(x);
  const bool has_scales = c.has_input(2) && c.input(2).size() > 0;
  if (has_scales)
    apply_scales(c.constant_reals(2), axes, all);
  else
    apply_sizes(c, c.constant_integers(3), axes, all);
  if (rule.transform == "tf_crop_and_resize") {
    const std::vector<double> roi = c.constant_reals(1);
    if (roi.size() != 2 * axes.size())
      throw ModelError("roi has {} values, expected {}", roi.size(), 2 * axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      all[static_cast<std::size_t>(axes[i])].roi_start = roi[i];
      all[static_cast<std::size_t>(axes[i])].roi_end = roi[i + axes.size()];
    }
  }
  resize_axes(c, rule, all);
}

/// Upsample, and Resize of opset 10: scales only, coordinates without offset.
void upsample(ImportContext& c) {
  const Sym x = c.input(0);
  ResizeRule rule;
  rule.mode = c.string("mode", "nearest");
  rule.transform = "asymmetric";
  rule.nearest_mode = "floor";
  std::vector<int> axes(static_cast<std::size_t>(x.rank()));
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
  std::vector<ResizeAxis> all = unchanged_axes(x);
  apply_scales(c.has_input(1) ? c.constant_reals(1) : c.reals("scales"), axes, all);
  resize_axes(c, rule, all);
}

Sampling read_sampling(ImportContext& c) {
  const std::string mode = c.string("mode", "linear");
  const std::string padding = c.string("padding_mode", "zeros");
  Sampling sampling;
  if (mode == "nearest")
    sampling.mode = SampleMode::nearest;
  else if (mode == "cubic" || mode == "bicubic")
    sampling.mode = SampleMode::cubic;
  else if (mode != "linear" && mode != "bilinear")
    throw ModelError("mode '{}' is unknown", mode);
  if (padding == "border")
    sampling.padding = SamplePadding::border;
  else if (padding == "reflection")
    sampling.padding = SamplePadding::reflection;
  else if (padding != "zeros")
    throw ModelError("padding_mode '{}' is unknown", padding);
  sampling.align_corners = c.integer("align_corners", 0) != 0;
  return sampling;
}

/// The grid [N, out..., k] holds positions in [-1, 1], the last axis of the map first.
void grid_sample(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym grid = c.input(1);
  const Sampling sampling = read_sampling(c);
  const int spatial = x.rank() - 2;
  if (spatial < 1 || grid.rank() != x.rank() || grid.dim(-1) != spatial)
    throw ModelError("the grid does not fit the map");
  const Dims grid_dims = grid.dims();
  const Dims out_dims(grid_dims.begin() + 1, grid_dims.end() - 1);
  const std::int64_t count = checked_product(out_dims, "grid");
  std::vector<Sym> positions;
  for (int axis = 0; axis < spatial; ++axis) {
    const std::int64_t at = spatial - 1 - axis;
    const Sym unit = reshape(slice(grid, -1, at, at + 1), {grid_dims[0], count});
    const auto extent = static_cast<double>(x.dim(axis + 2));
    positions.push_back(sampling.align_corners ? (unit + 1.0) * ((extent - 1) / 2)
                                               : ((unit + 1.0) * extent - 1.0) * 0.5);
  }
  Dims result{x.dim(0), x.dim(1)};
  result.insert(result.end(), out_dims.begin(), out_dims.end());
  c.output(reshape(sample(x, positions, sampling), result));
}

/// Positions of the grid GridSample reads, moved by a matrix per image.
void affine_grid(ImportContext& c) {
  const Sym theta = c.input(0);
  const std::vector<std::int64_t> size = c.constant_integers(1);
  const bool align_corners = c.integer("align_corners", 0) != 0;
  const auto spatial = static_cast<std::int64_t>(size.size()) - 2;
  if (spatial < 1 || theta.rank() != 3 || theta.dim(2) != spatial + 1)
    throw ModelError("theta does not fit the size");
  const Dims out(size.begin() + 2, size.end());
  const std::int64_t count = checked_product(out, "size");
  c.builder().reserve_table({4, count, spatial + 1});
  const Dims strides = dense_strides(out);
  std::vector<double> base;
  for (std::int64_t i = 0; i < count; ++i) {
    for (std::size_t axis = out.size(); axis-- > 0;) {
      const auto extent = static_cast<double>(out[axis]);
      const auto at = static_cast<double>(i / strides[axis] % out[axis]);
      base.push_back(align_corners ? (extent == 1 ? 0 : -1 + 2 * at / (extent - 1))
                                   : (2 * at + 1) / extent - 1);
    }
    base.push_back(1);
  }
  const Sym positions = c.builder().reals(theta.dtype(), {count, spatial + 1}, base);
  Dims result{theta.dim(0)};
  result.insert(result.end(), out.begin(), out.end());
  result.push_back(spatial);
  c.output(reshape(matmul(positions, swap_axes(theta, 1, 2)), result));
}

const OnnxOp rows[] = {
    {"AffineGrid", 20, affine_grid}, {"GridSample", 16, grid_sample}, {"Resize", 10, upsample},
    {"Resize", 11, resize},          {"Upsample", 7, upsample},
};

}  // namespace

std::span<const OnnxOp> onnx_resize_ops() {
  return rows;
}

}  // namespace sylvite
