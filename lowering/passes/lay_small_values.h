#pragma once

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which numbers for channels are computed in the layout that their readers want: a change of layout moves
/// nothing there, but would keep the work out of its readers' kernels. REQUIRES assign_layouts first, with channels_last.
[[nodiscard]] Graph lay_small_values(const Graph& graph);

}  // namespace sylvite
