#pragma once
// States that are stored wider than they are computed with, as caches of f32 that a model in bf16 has.

#include <vector>

#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which entries of these pairs are replaced in the type that the state has:
///
///   before: next = cast(scatter_elements(cast(past, bf16), indices, updates), f32)
///   after:  next = scatter_elements(past, indices, cast(updates, f32)), and what else read the scatter reads cast(next, bf16)
///
/// The conversions would read and write all of the state twice for a few entries. So for all that moves elements alone between the two
/// casts. Entries that a user set are rounded only where they are read in the narrow type. Attention of a few queries reads keys and
/// values as they are stored.
[[nodiscard]] Graph widen_writes(const Graph& graph, const std::vector<State>& pairs,
                                 const LoweringOptions& options);

}  // namespace sylvite
