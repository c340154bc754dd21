#pragma once
// Strided tensors of torch as dense memory and a transpose.

#include <cstdint>
#include <vector>

#include "sylvite/types.h"

namespace sylvite {

/// The axes in the order in which memory holds them, outermost first: that which is the identity where strides are
/// row-major. Axes of extent 1 may have any stride. Throws UnsupportedError when elements have gaps between them or
/// overlap; a tensor without elements may have any strides.
[[nodiscard]] std::vector<std::int64_t> memory_order(const Dims& dims, const Dims& strides);

/// dims[order[0]], dims[order[1]], ...
[[nodiscard]] Dims in_order(const Dims& dims, const std::vector<std::int64_t>& order);

}  // namespace sylvite
