#pragma once
// Expressions of sizes as numbers.

#include <vector>

#include "sylvite/extent.h"
#include "sylvite/types.h"

namespace sylvite {

/// The value of each extent, as Extent::at tells it.
[[nodiscard]] Dims extents_at(const std::vector<Extent>& extents, const SymbolValues& sizes);

}  // namespace sylvite
