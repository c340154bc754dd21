#pragma once
// Values that are never stored whole: a depthwise convolution reads a few rows of its input at a time, and its kernel can compute
// them as it goes; a fold of rows that are gathered reads each of them once.

#include <vector>

#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The nodes that the kernel of convolution `reader` computes ahead of it by rows: another convolution and
/// the pointwise work on its result, in ascending order. Empty where that is not done: unless `reader` is
/// depthwise, is all that reads the value (`readers`, per value), both are channel-blocked f32, the value
/// takes more than options.large_bytes, and its elements few products each: what takes many is not bound by
/// memory, and computing rows anew at the borders of tasks would cost more.
/// Of a fold `reader` over other dims than the innermost, on a CPU: the gather of rows that it alone reads, and work on these with
/// numbers for each row.
[[nodiscard]] std::vector<NodeId> rows_ahead(const Graph& graph, NodeId reader,
                                             const IdMap<std::vector<NodeId>>& readers,
                                             const LoweringOptions& options);

}  // namespace sylvite
