#pragma once

#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which products of several batches by one matrix, among others, are products of the rows of all of these, where
/// the device has a template for that and none for what was (options.refuse_template, which must be given).
[[nodiscard]] Graph join_batches(const Graph& graph, const LoweringOptions& options);

}  // namespace sylvite
