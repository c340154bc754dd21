#pragma once
// What a template is asked before a pass has made a graph for it.

#include "lowering/plan/kernel.h"
#include "sylvite/graph.h"

namespace sylvite {

/// A kernel of one node, whose operands are inputs of the types that they have in the graph.
[[nodiscard]] Kernel kernel_alone(const Graph& graph, const Node& node);

}  // namespace sylvite
