#pragma once
// Windows that convolutions and poolings slide over maps.

#include <string>

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// Per spatial axis; pads are begins, then ends.
struct MapWindow {
  Dims kernel, strides, dilations, pads;

  [[nodiscard]] std::size_t rank() const { return kernel.size(); }
  [[nodiscard]] std::int64_t extent(std::size_t axis) const {
    return (kernel[axis] - 1) * dilations[axis] + 1;
  }
};

/// Throws ModelError unless all values lie between `minimum` and what leaves room for products of two of
/// them.
void check_extents(const std::string& name, const Dims& values, std::int64_t minimum);

/// The extents after N and C. Throws ModelError below rank 3.
[[nodiscard]] Dims spatial_dims(Sym x);

}  // namespace sylvite
