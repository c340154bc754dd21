#pragma once
// Convolutions of groups by filters that are no constants, and of groups that no template takes.

#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which convolutions of groups by filters that are no constants, and their gradients by these filters, are few
/// of one group each, of neighbouring groups with zeros between them, side by side; not where the device has a template for the
/// groups as they are. Constant filters whose groups no template takes have fewer and wider ones.
[[nodiscard]] Graph join_groups(const Graph& graph, const LoweringOptions& options);

}  // namespace sylvite
