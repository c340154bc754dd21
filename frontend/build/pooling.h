#pragma once
// Poolings over windows and over whole maps.

#include <vector>

#include "frontend/build/window.h"

namespace sylvite {

/// Elements to add at the end of each axis so that the last window that begins inside fits, where counts of windows are
/// rounded up. A window that would start in the end padding is dropped.
[[nodiscard]] Dims ceil_extension(const MapWindow& window, const Dims& spatial);
[[nodiscard]] MapWindow extended(MapWindow window, const Dims& extension);

[[nodiscard]] Sym max_pool(Sym x, const MapWindow& window);
/// For each window the first position of its maximum, in the map as if it were one axis, row- or column-major: i64.
[[nodiscard]] Sym max_positions(Sym x, const MapWindow& window, bool is_column_major);

/// Padding may count as elements of a window; what `extension` adds beyond it never does.
[[nodiscard]] Sym average_pool(Sym x, const MapWindow& window, const Dims& extension, bool counts_padding);

/// The axes behind the first two.
[[nodiscard]] std::vector<std::int64_t> map_axes(Sym x);
/// The mean of all that lies behind the first two axes, which keep extents of 1.
[[nodiscard]] Sym global_average(Sym x);

}  // namespace sylvite
