#pragma once
// Work that treats each column of a matrix by itself, whatever the order of its rows.

#include "sylvite/graph.h"

namespace sylvite {

/// Is the node pointwise work on x, of x's extents, beside constants that vary along the last axis only?
[[nodiscard]] bool works_by_columns(const Graph& graph, const Node& node, ValueId x);

}  // namespace sylvite
