#pragma once
// Evaluates graphs in f32, by vectors and in threads: answers of a model whose kernels are not compiled yet. What it has no
// loops of its own for, the reference (frontend/graph/interpreter.h) evaluates.

#include <cstdint>
#include <vector>

#include "frontend/ops/evaluate.h"
#include "sylvite/graph.h"

namespace sylvite {

/// As evaluate_node, but floats of 32 bits are added and multiplied in f32, and those of 16 bits by way of f32.
[[nodiscard]] std::vector<Tensor> evaluate_quickly(Op op, InputTensors inputs, const Attributes& attributes,
                                                   ResultTypes types, int threads);

/// As interpret.
[[nodiscard]] std::vector<Tensor> interpret_quickly(const Graph& graph, const std::vector<Tensor>& inputs,
                                                    int threads);

/// Roughly how long a run takes with one thread, in seconds. REQUIRES known shapes.
[[nodiscard]] double quick_seconds(const Graph& graph);

}  // namespace sylvite
