#include "frontend/onnx/window.h"

#include <algorithm>

#include "base/error.h"
#include "frontend/values/size_facts.h"

namespace sylvite {
namespace {

/// SAME keeps ceil(extent / stride) outputs; the odd element goes to the end, or to the beginning for
/// SAME_LOWER.
void resolve_same_pads(MapWindow& window, const Dims& spatial, bool is_lower) {
  for (std::size_t axis = 0; axis < window.rank(); ++axis) {
    const std::int64_t stride = window.strides[axis], reach = window.extent(axis);
    const auto pads_at = [stride, reach, is_lower](const Dims& extent) {
      const std::int64_t outputs = (extent[0] + stride - 1) / stride;
      const std::int64_t total = std::max<std::int64_t>((outputs - 1) * stride + reach - extent[0], 0);
      const std::int64_t begin = is_lower ? (total + 1) / 2 : total / 2;
      return Dims{begin, total - begin};
    };
    const DecisionAsExtents follow = [stride, reach, is_lower](const std::vector<Extent>& extent) {
      const Extent outputs = ceil_div(extent.at(0), stride);
      const Extent total = max((outputs - 1) * stride + reach - extent[0], 0);
      const Extent begin = floor_div(total + (is_lower ? 1 : 0), 2);
      return FollowingExtents{{begin, total - begin}, {outputs}, true};
    };
    const std::string rule =
        fmt::format("{} pads of windows of {}, stride {}", is_lower ? "lower" : "upper", reach, stride);
    const Dims pads = decide_by_sizes(rule, {spatial[axis]}, pads_at, follow);
    window.pads[axis] = pads[0];
    window.pads[axis + window.rank()] = pads[1];
  }
}

}  // namespace

Dims axis_attribute(ImportContext& c, const std::string& name, std::size_t rank, std::int64_t fallback,
                    std::int64_t minimum) {
  if (!c.has_attribute(name)) return Dims(rank, fallback);
  Dims values = c.integers(name);
  if (values.size() != rank) throw ModelError("{} has {} values, expected {}", name, values.size(), rank);
  check_extents(name, values, minimum);
  return values;
}

MapWindow read_window(ImportContext& c, const Dims& kernel, const Dims& spatial) {
  MapWindow window;
  window.kernel = kernel;
  if (kernel.size() != spatial.size())
    throw ModelError("the window has {} axes, the input {}", kernel.size(), spatial.size());
  check_extents("the window", kernel, 1);
  check_extents("the map", spatial, 0);
  window.strides = axis_attribute(c, "strides", kernel.size(), 1, 1);
  window.dilations = axis_attribute(c, "dilations", kernel.size(), 1, 1);
  window.pads = axis_attribute(c, "pads", 2 * kernel.size(), 0, 0);
  const std::string auto_pad = c.string("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER")
    resolve_same_pads(window, spatial, auto_pad == "SAME_LOWER");
  else if (auto_pad == "VALID")
    window.pads.assign(2 * kernel.size(), 0);
  else if (auto_pad != "NOTSET" && !auto_pad.empty())
    throw ModelError("auto_pad '{}' is unknown", auto_pad);
  return window;
}

void check_kernel_shape(ImportContext& c, const Dims& kernel) {
  if (c.has_attribute("kernel_shape") && c.integers("kernel_shape") != kernel) {
    throw ModelError("kernel_shape [{}] differs from the weights' [{}]",
                     fmt::join(c.integers("kernel_shape"), ","), fmt::join(kernel, ","));
  }
}

Sym convolve(ImportContext& c, const std::vector<Sym>& inputs) {
  const Dims kernel = spatial_dims(inputs.at(1));
  check_kernel_shape(c, kernel);
  const MapWindow window = read_window(c, kernel, spatial_dims(inputs[0]));
  return conv(inputs, {{"strides", window.strides},
                       {"pads", window.pads},
                       {"dilations", window.dilations},
                       {"groups", c.integer("group", 1)}});
}

}  // namespace sylvite
