#pragma once
// Work on elements that meets at the same elements: one kernel with several results.

#include <vector>

#include "lowering/plan/fusion.h"
#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The same groups, topologically ordered, in which groups of pointwise work whose results lie alike are one group of several
/// outputs, if one reads what the other makes at the same element, or they share something as large as a result that
/// they read, or, on a device, a launch takes longer than they do: what both read is read once, and what one makes for the
/// other is not read back. As the moments and the parameter of an optimiser's step, or both parts of a complex number.
[[nodiscard]] std::vector<Group> join_elements(const Graph& graph, std::vector<Group> groups,
                                               const LoweringOptions& options);

}  // namespace sylvite
