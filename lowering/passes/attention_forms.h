#pragma once
// What an attention of a graph can run on, asked of the device's templates before a pass has made a graph for it.

#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// Does the device have a template for it as it is? REQUIRES options.refuse_template.
[[nodiscard]] bool attention_has_template(const Graph& graph, const Node& node,
                                          const LoweringOptions& options);

/// Is it two products and a softmax, of which the products have templates? Causal ones, those with a cap, and those whose
/// heads are shared are not. REQUIRES options.refuse_template.
[[nodiscard]] bool attention_divides(const Graph& graph, const Node& node, const LoweringOptions& options);

}  // namespace sylvite
