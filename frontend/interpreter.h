#pragma once
// The reference interpreter: evaluates a graph node by node with each op's slow, clear semantics. The oracle
// of every test, and the engine of constant folding.

#include <vector>

#include "frontend/graph.h"

namespace sylvite {

/// Inputs and results in graph order. Throws InputError when an input's dtype or shape differs from the
/// graph's.
[[nodiscard]] std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs);

}  // namespace sylvite
