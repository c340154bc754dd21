// Resizing of maps.

#include <algorithm>

#include "frontend/build/resize.h"
#include "frontend/build/window.h"
#include "frontend/torch/torch_ops.h"

namespace sylvite {
namespace {

/// Where `scales` has none, or 0, they are the ratio of the extents.
Sym resized(TorchContext& c, Sym x, const ResizeRule& rule, const std::vector<double>& scales) {
  const Dims to = c.result_dims_of_rank(x.dims().size());
  for (int axis = 2; axis < x.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    ResizeAxis size;
    size.from = x.dim(axis);
    size.to = to[i];
    size.scale = static_cast<double>(size.to) / static_cast<double>(std::max<std::int64_t>(size.from, 1));
    const bool is_given = i - 2 < scales.size() && scales[i - 2] > 0;
    if (is_given && rule.transform != "align_corners") {
      size.scale = scales[i - 2];
      size.has_own_scale = true;
    }
    x = resize_axis(x, axis, rule, size);
  }
  return x;
}

std::vector<double> read_scales(TorchContext& c, std::size_t rank) {
  c.ignore("output_size");
  if (!c.has("scale_factors")) return {};
  std::vector<double> scales = c.reals("scale_factors");
  if (scales.size() != rank) throw ModelError("{} scale_factors are given for {} axes", scales.size(), rank);
  return scales;
}

std::vector<double> read_axis_scales(TorchContext& c, std::initializer_list<std::string_view> names) {
  c.ignore("output_size");
  std::vector<double> scales;
  for (const std::string_view name : names) scales.push_back(c.has(name) ? c.real(name) : 0);
  return scales;
}

ResizeRule linear_rule(TorchContext& c, const char* mode) {
  ResizeRule rule;
  rule.mode = mode;
  rule.transform = c.flag("align_corners") ? "align_corners" : "half_pixel";
  return rule;
}

ResizeRule nearest_rule(bool is_exact) {
  ResizeRule rule;
  rule.transform = is_exact ? "half_pixel" : "asymmetric";
  rule.nearest_mode = is_exact ? "round_prefer_ceil" : "floor";
  return rule;
}

void resize_linear_vec(TorchContext& c) {
  const Sym x = c.tensor("input");
  c.output(resized(c, x, linear_rule(c, "linear"), read_scales(c, spatial_dims(x).size())));
}
void resize_cubic_vec(TorchContext& c) {
  const Sym x = c.tensor("input");
  c.output(resized(c, x, linear_rule(c, "cubic"), read_scales(c, spatial_dims(x).size())));
}
template <bool is_exact>
void resize_nearest_vec(TorchContext& c) {
  const Sym x = c.tensor("input");
  c.output(resized(c, x, nearest_rule(is_exact), read_scales(c, spatial_dims(x).size())));
}
void resize_bilinear(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(resized(c, x, linear_rule(c, "linear"), read_axis_scales(c, {"scales_h", "scales_w"})));
}
void resize_bicubic(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(resized(c, x, linear_rule(c, "cubic"), read_axis_scales(c, {"scales_h", "scales_w"})));
}
/// As for images: an image that becomes smaller is smoothed.
ResizeRule smooth_rule(TorchContext& c, const char* mode) {
  ResizeRule rule = linear_rule(c, mode);
  if (c.flag("align_corners")) throw UnsupportedError("smoothing with align_corners is not served");
  rule.is_antialias = rule.excludes_outside = true;
  rule.cubic_a = -0.5;
  return rule;
}
void resize_bilinear_smooth(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(resized(c, x, smooth_rule(c, "linear"), read_axis_scales(c, {"scales_h", "scales_w"})));
}
void resize_bicubic_smooth(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(resized(c, x, smooth_rule(c, "cubic"), read_axis_scales(c, {"scales_h", "scales_w"})));
}
template <bool is_exact>
void resize_nearest(TorchContext& c) {
  const Sym x = c.tensor("self");
  c.output(resized(c, x, nearest_rule(is_exact), read_axis_scales(c, {"scales_h", "scales_w"})));
}

constexpr std::string_view vec_schema = "input output_size align_corners scale_factors";
constexpr std::string_view sized_schema = "self output_size align_corners scales_h scales_w";

const TorchOp resize_rows[] = {
    {"aten._upsample_bicubic2d_aa.default", sized_schema, resize_bicubic_smooth},
    {"aten._upsample_bilinear2d_aa.default", sized_schema, resize_bilinear_smooth},
    {"aten.upsample_bicubic2d.default", sized_schema, resize_bicubic},
    {"aten.upsample_bicubic2d.vec", vec_schema, resize_cubic_vec},
    {"aten.upsample_bilinear2d.default", sized_schema, resize_bilinear},
    {"aten.upsample_bilinear2d.vec", vec_schema, resize_linear_vec},
    {"aten.upsample_linear1d.vec", vec_schema, resize_linear_vec},
    {"aten.upsample_nearest1d.vec", "input output_size scale_factors", resize_nearest_vec<false>},
    {"aten.upsample_nearest2d.default", "self output_size scales_h scales_w", resize_nearest<false>},
    {"aten.upsample_nearest2d.vec", "input output_size scale_factors", resize_nearest_vec<false>},
    {"aten.upsample_nearest3d.vec", "input output_size scale_factors", resize_nearest_vec<false>},
    {"aten.upsample_trilinear3d.vec", vec_schema, resize_linear_vec},
};

}  // namespace

std::span<const TorchOp> torch_resize_ops() {
  return resize_rows;
}

}  // namespace sylvite
