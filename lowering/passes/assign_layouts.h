#pragma once
// Which values lie in memory with their channels in blocks, so that a vector register holds channels of one
// pixel.

#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which rank-4 f32 values around convolutions have Layout{options.channel_block}, with
/// to_layout nodes where a value is needed in the other layout. Inputs and outputs of the graph stay dense,
/// as do constants: to_layout of a constant stands for a weight that is packed when the program is loaded.
/// Blocked values flow through operations that keep the padded channels finite, so that a zero weight wipes
/// them out. A graph without convolutions comes back as it is.
/// With channel_block = 0 it is rank-4 f16 and bf16 values, with options.tf32 f32 as well, each in one block
/// of all its channels, where those are a multiple of 4 (no value is padded): as tensor cores read images.
[[nodiscard]] Graph assign_layouts(const Graph& graph, const LoweringOptions& options);

}  // namespace sylvite
