#pragma once
// Group normalisation by one kernel.

#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which a layer_norm without scale over groups of channels of a convolution's result, or over the pixels of
/// each, is one of the image's groups, where the device has a template for it. options.refuse_template must be given.
[[nodiscard]] Graph norm_groups(const Graph& graph, const LoweringOptions& options);

}  // namespace sylvite
