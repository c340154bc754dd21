// Resizing and sampling of maps.

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "frontend/build/resize.h"
#include "frontend/build/sampling.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

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

/// `are_own`: the model has them as numbers, and none computes them by sizes.
void apply_scales(const std::vector<double>& scales, bool are_own, const std::vector<int>& axes,
                  std::vector<ResizeAxis>& all) {
  if (scales.size() != axes.size())
    throw ModelError("{} scales are given for {} axes", scales.size(), axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = all[static_cast<std::size_t>(axes[i])];
    const double to = scaled_extent(axis.from, scales[i]);
    if (!(scales[i] > 0) || !(to < 1e12)) throw ModelError("scale {} is out of range", scales[i]);
    axis.scale = scales[i];
    axis.to = static_cast<std::int64_t>(to);
    axis.has_own_scale = are_own;
  }
}

/// Towards zero, but for errors of sums in f32: a mean of equal integers is that integer.
Sym cut(Sym y, DType dtype) {
  constexpr double error = 1.0 / 4096;
  return cast(y + where(apply(Op::less, y, 0.0), y.builder().scalar(DType::f32, -error), error), dtype);
}

/// Of sizes ONNX Runtime makes scales of f32, by which it divides: at a tie the nearest element depends on it.
void narrow_scales(const ResizeRule& rule, std::vector<ResizeAxis>& all) {
  constexpr std::array<std::string_view, 4> divided = {"asymmetric", "half_pixel", "pytorch_half_pixel",
                                                       "tf_half_pixel_for_nn"};
  if (rule.mode != "nearest" || std::ranges::find(divided, rule.transform) == divided.end()) return;
  for (ResizeAxis& axis : all) axis.scale = static_cast<float>(axis.scale);
}

/// What is interpolated of integers is cut once at the end, as in ONNX Runtime and in ONNX's reference; with antialias each
/// axis is rounded.
void resize_axes(ImportContext& c, const ResizeRule& rule, const std::vector<ResizeAxis>& all) {
  const DType dtype = c.input(0).dtype();
  const bool is_cut = !is_float(dtype) && rule.mode != "nearest" && !rule.is_antialias;
  Sym y = is_cut ? cast(c.input(0), DType::f32) : c.input(0);
  for (std::size_t i = 0; i < all.size(); ++i) y = resize_axis(y, static_cast<int>(i), rule, all[i]);
  c.output(is_cut ? cut(y, dtype) : y);
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
    apply_scales(c.constant_reals(2), c.binding(2).initializer != nullptr, axes, all);
  else
    apply_sizes(c, c.constant_integers(3), axes, all);
  narrow_scales(rule, all);
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
  if (c.has_input(1))
    apply_scales(c.constant_reals(1), c.binding(1).initializer != nullptr, axes, all);
  else if (c.opset() < 7)
    apply_scales({1, 1, c.real("height_scale", 1), c.real("width_scale", 1)}, true, axes, all);
  else
    apply_scales(c.reals("scales"), true, axes, all);
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

void grid_sample_op(ImportContext& c) {
  const Sym x = c.input(0);
  const Sym grid = c.input(1);
  const Sampling sampling = read_sampling(c);
  c.output(grid_sample(x, grid, sampling));
}

/// The coordinates of an axis of GridSample's maps, which reach from -1 to 1.
std::vector<double> grid_places(std::int64_t extent, bool align_corners) {
  std::vector<double> places;
  for (std::int64_t i = 0; i < extent; ++i) {
    const auto at = static_cast<double>(i), size = static_cast<double>(extent);
    const double corner = extent == 1 ? 0 : -1 + 2 * at / (size - 1);
    places.push_back(align_corners ? corner : (2 * at + 1) / size - 1);
  }
  return places;
}

/// Positions of the grid GridSample reads, moved by a matrix per image. Each axis of the grid adds its coordinates times a column
/// of the matrix; the innermost axis has the first column.
void affine_grid(ImportContext& c) {
  const Sym theta = c.input(0);
  const std::vector<std::int64_t> size = c.constant_integers(1);
  const bool align_corners = c.integer("align_corners", 0) != 0;
  const int spatial = static_cast<int>(size.size()) - 2;
  if (spatial < 1 || theta.rank() != 3 || theta.dim(1) != spatial || theta.dim(2) != spatial + 1)
    throw ModelError("theta does not fit the size");
  Dims per_image(size.size(), 1);
  per_image.front() = theta.dim(0);
  per_image.back() = theta.dim(1);
  const auto column = [&](int i) { return reshape(slice(theta, 2, i, i + 1), per_image); };
  Sym y = column(spatial);
  for (int i = 0; i < spatial; ++i) {
    const auto axis = static_cast<std::size_t>(spatial - i);
    const std::int64_t extent = size[axis + 1];
    c.builder().reserve_table({extent});
    Dims line(size.size(), 1);
    line[axis] = extent;
    y = y + c.builder().reals(theta.dtype(), line, grid_places(extent, align_corners)) * column(i);
  }
  c.output(y);
}

const OnnxOp resize_rows[] = {
    {"AffineGrid", 20, affine_grid}, {"GridSample", 16, grid_sample_op}, {"Resize", 10, upsample},
    {"Resize", 11, resize},          {"Upsample", 1, upsample},
};

}  // namespace

std::span<const OnnxOp> onnx_resize_ops() {
  return resize_rows;
}

}  // namespace sylvite
