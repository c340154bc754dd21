#pragma once

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which products of many matrices by a few columns, or of a few rows, whose depth is a few elements, are sums of
/// products of columns and rows: pointwise work, where tiles of tensor cores would stay empty.
[[nodiscard]] Graph expand_products(const Graph& graph);

}  // namespace sylvite
