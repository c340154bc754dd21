#pragma once
// Means over windows, for the operators that differ in how they store their values.

#include "frontend/onnx/import_context.h"

namespace sylvite {

/// The means over the node's windows, with its ceil_mode and count_include_pad: padding may count as elements
/// of a window, what ceil_mode adds beyond it never does.
[[nodiscard]] Sym average_pool(ImportContext& c, Sym x);

/// The mean of all that lies behind the first two axes, which keep extents of 1.
[[nodiscard]] Sym global_average(Sym x);

}  // namespace sylvite
