#pragma once
// The reference interpreter: evaluates a graph node by node with each op's slow, clear semantics. The oracle
// of every test, and the engine of constant folding.

#include <vector>

#include "frontend/ops/evaluate.h"
#include "sylvite/graph.h"

namespace sylvite {

/// Inputs and results in graph order. Throws InputError when an input's dtype or shape differs from the
/// graph's.
[[nodiscard]] std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs);

/// One operation, whose results have `types`. Results without elements are made without running it: their
/// other extents may be huge.
[[nodiscard]] std::vector<Tensor> evaluate_node(Op op, InputTensors inputs, const Attributes& attributes,
                                                ResultTypes types);

}  // namespace sylvite
