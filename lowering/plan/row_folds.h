#pragma once
// Rows that are folded, and used again with what the folds made of them: one kernel.

#include <vector>

#include "lowering/plan/fusion.h"
#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The same groups in which pointwise work makes the sums and the greatest elements of rows that it alone reads itself, as gradients
/// of norms and of softmax do, and a sum those that it is made of: what both read is read once. Where others read such a sum on the
/// way, the fold behind it is made with it, and the work behind that is left. Only where the device has a template for it (options.refuse_template, which must
/// be given).
[[nodiscard]] std::vector<Group> join_row_folds(const Graph& graph, std::vector<Group> groups,
                                                const LoweringOptions& options);

}  // namespace sylvite
