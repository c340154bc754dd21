#pragma once
// Folds that read the same values: one kernel with several results.

#include <vector>

#include "lowering/plan/fusion.h"
#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The same groups in which folds over the same dims of values that lie alike are one group of several outputs, if they share what
/// they read, or read so little that a launch takes longer; as the sums of a normalisation's gradient do, or an extreme and its
/// place. So are they where work behind the second reads the first, which then is a group of its own. Only where the device has a
/// template for all at once (options.refuse_template, which must be given).
[[nodiscard]] std::vector<Group> join_twin_folds(const Graph& graph, std::vector<Group> groups,
                                                 const LoweringOptions& options);

}  // namespace sylvite
