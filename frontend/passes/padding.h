#pragma once
// What passes ask of pads. Internal to frontend/passes.

#include "sylvite/graph.h"

namespace sylvite {

/// What makes `id` by writing one number around a value, nothing between its elements; nullptr: nothing does.
[[nodiscard]] const Node* padding_of(const Graph& graph, ValueId id);

/// The number that such a pad writes is zero.
[[nodiscard]] bool has_zeros(const Graph& graph, const Node& pad);

}  // namespace sylvite
