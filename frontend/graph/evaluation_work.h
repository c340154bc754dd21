#pragma once
// What the reference evaluation of a node costs: what a bound on folding constants is counted in.

#include <cstdint>

#include "frontend/graph/graph.h"

namespace sylvite {

/// Scalar steps that the evaluation takes, roughly; at most 2^60. REQUIRES known shapes.
[[nodiscard]] std::int64_t evaluation_work(const Graph& graph, const Node& node);

}  // namespace sylvite
