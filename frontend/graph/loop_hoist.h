#pragma once
// What the trips of a loop compute of their slices alone, computed for all of them before the loop.

#include <unordered_map>

#include "frontend/graph/loop_builder.h"

namespace sylvite {

/// Values of a trip whose values of all trips, [trips, ...], are computed at once: products and gathers that no state has a
/// part in, and what follows from them. `places` stand for what a trip is given; its nodes are those from `first` on. What
/// is added and not read afterwards are dead nodes.
[[nodiscard]] std::unordered_map<ValueId, Sym> hoist_products(GraphBuilder& builder, const LoopSpec& spec,
                                                              const TripValues& places, NodeId first);

}  // namespace sylvite
