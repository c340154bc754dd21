#pragma once
// A model in less precision.

#include "frontend/graph.h"

namespace sylvite {

/// The graph with every f32 value stored as bf16, constants too; arithmetic stays as wide as kernels make it.
/// Inputs and outputs keep their types: the first and last nodes convert. Constants that are finite stay
/// finite, so that masks of the lowest f32 do not become infinite. Run it after the passes: patterns know
/// constants by more digits than bf16 has.
[[nodiscard]] Graph store_as_bf16(const Graph& graph);

}  // namespace sylvite
