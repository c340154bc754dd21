#pragma once
// The reference interpreter: evaluates a graph node by node with each op's slow, clear semantics. The oracle
// of every test, and the engine of constant folding.

#include <functional>
#include <vector>

#include "frontend/ops/evaluate.h"
#include "sylvite/graph.h"

namespace sylvite {

/// Inputs and results in graph order. Throws InputError when an input's dtype or shape differs from the
/// graph's.
[[nodiscard]] std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs);

/// The results of one operation, as evaluate_node gives them.
using Evaluation = std::function<std::vector<Tensor>(Op, InputTensors, const Attributes&, ResultTypes types)>;
/// The same by other means.
[[nodiscard]] std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                            const Evaluation& evaluate);

/// A value per state of the graph, all zero.
[[nodiscard]] std::vector<Tensor> zero_states(const Graph& graph);
/// The same with states in the order of Graph::states, which the run replaces: inputs and results are the others.
[[nodiscard]] std::vector<Tensor> interpret(const Graph& graph, const std::vector<Tensor>& inputs,
                                            std::vector<Tensor>& states);

/// One operation, whose results have `types`. Results without elements are made without running it: their
/// other extents may be huge.
[[nodiscard]] std::vector<Tensor> evaluate_node(Op op, InputTensors inputs, const Attributes& attributes,
                                                ResultTypes types);

/// What the body of a loop gives for what a trip is given.
using BodyRun = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
/// The results of a loop whose body is run by `run_body`. REQUIRES inputs and types as its rule says.
[[nodiscard]] std::vector<Tensor> evaluate_loop(InputTensors inputs, const Attributes& attributes,
                                                ResultTypes types, const BodyRun& run_body);

}  // namespace sylvite
