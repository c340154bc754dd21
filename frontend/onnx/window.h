#pragma once
// The window attributes that convolutions and poolings of ONNX share.

#include <string>
#include <vector>

#include "frontend/onnx/import_context.h"

namespace sylvite {

/// Per spatial axis; pads are begins then ends, already resolved from auto_pad.
struct OnnxWindow {
  Dims kernel, strides, dilations, pads;

  [[nodiscard]] std::size_t rank() const { return kernel.size(); }
  [[nodiscard]] std::int64_t extent(std::size_t axis) const {
    return (kernel[axis] - 1) * dilations[axis] + 1;
  }
};

/// Reads strides, dilations, pads and auto_pad for windows of `kernel` over `spatial` extents. Throws
/// ModelError for lists of the wrong length and values out of range.
[[nodiscard]] OnnxWindow read_window(ImportContext& c, const Dims& kernel, const Dims& spatial);

/// Throws ModelError when the node gives a kernel_shape that is not the weights'.
void check_kernel_shape(ImportContext& c, const Dims& kernel);

/// The convolution of x and filters (and a bias, if given) with the node's window and groups.
[[nodiscard]] Sym convolve(ImportContext& c, const std::vector<Sym>& inputs);

/// Throws ModelError unless all values lie between `minimum` and what leaves room for products of two of
/// them.
void check_extents(const std::string& name, const Dims& values, std::int64_t minimum);

/// A per-axis attribute, or `fallback` for each axis when absent.
[[nodiscard]] Dims axis_attribute(ImportContext& c, const std::string& name, std::size_t rank,
                                  std::int64_t fallback, std::int64_t minimum);

/// The extents after N and C. Throws ModelError below rank 3.
[[nodiscard]] Dims spatial_dims(Sym x);

}  // namespace sylvite
