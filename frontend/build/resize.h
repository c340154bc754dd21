#pragma once
// Resizing of maps along one axis at a time, by tables of positions or weights.

#include <cstdint>
#include <string>

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// What holds for all axes. Words are those of ONNX's Resize.
struct ResizeRule {
  std::string mode = "nearest", transform = "half_pixel", nearest_mode = "round_prefer_floor";
  double cubic_a = -0.75, extrapolation = 0;
  bool is_antialias = false, excludes_outside = false;
};

struct ResizeAxis {
  std::int64_t from = 0, to = 0;
  double scale = 1, roi_start = 0, roi_end = 1;
  bool has_own_scale = false;  ///< a number of the model, from which `to` follows at all sizes
};

/// The extent that a scale makes: a product in f32 where the scale is a number of f32, as ONNX infers shapes, so that 240 by
/// 0.7 are 168. What it makes of a product out of range is out of range, too.
[[nodiscard]] double scaled_extent(std::int64_t extent, double scale);

/// A weighted sum, or a gather for nearest neighbours; nothing where nothing changes. Throws UnsupportedError for tables
/// that are too large, ModelError for unknown words.
[[nodiscard]] Sym resize_axis(Sym x, int axis, const ResizeRule& rule, const ResizeAxis& size);

}  // namespace sylvite
