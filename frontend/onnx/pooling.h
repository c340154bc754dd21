#pragma once
// Means over windows, for the operators that differ in how they store their values.

#include "frontend/build/pooling.h"
#include "frontend/onnx/import_context.h"

namespace sylvite {

/// The means over the node's windows, with its ceil_mode and count_include_pad.
[[nodiscard]] Sym average_pool(ImportContext& c, Sym x);

}  // namespace sylvite
