#pragma once
// The window attributes that convolutions and poolings of ONNX share.

#include <string>
#include <vector>

#include "frontend/build/window.h"
#include "frontend/onnx/import_context.h"

namespace sylvite {

/// Reads strides, dilations, pads and auto_pad for windows of `kernel` over `spatial` extents. Throws
/// ModelError for lists of the wrong length and values out of range.
[[nodiscard]] MapWindow read_window(ImportContext& c, const Dims& kernel, const Dims& spatial);

/// Throws ModelError when the node gives a kernel_shape that is not the weights'.
void check_kernel_shape(ImportContext& c, const Dims& kernel);

/// The convolution of x and filters (and a bias, if given) with the node's window and groups.
[[nodiscard]] Sym convolve(ImportContext& c, const std::vector<Sym>& inputs);

/// A per-axis attribute, or `fallback` for each axis when absent.
[[nodiscard]] Dims axis_attribute(ImportContext& c, const std::string& name, std::size_t rank,
                                  std::int64_t fallback, std::int64_t minimum);

}  // namespace sylvite
