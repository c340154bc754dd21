#pragma once
// What follows from a model's sizes when constants are folded: positions, masks, angles of rotation. The result of such a fold is
// a table (size_table.h), so that other sizes need no import.

#include <vector>

#include "frontend/values/size_table.h"
#include "sylvite/graph.h"

namespace sylvite {

/// How the result of a node with constant inputs follows from numbers: those that its tables follow from, integers among its inputs,
/// and extents that it has itself. Empty where there are none of the first two and it has inputs, where it has several results, or
/// where they would be many.
[[nodiscard]] std::vector<TableReading> fold_readings(const Graph& graph, const Node& node);

/// `made` as a slice with these attributes of a constant that is the same at all sizes, where its bounds are not: so are positions
/// relative to each other, whose table has more than a model needs.
[[nodiscard]] Tensor as_cut_table(const Tensor& made, const Tensor& whole, const Attributes& slice);

}  // namespace sylvite
