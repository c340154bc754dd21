#pragma once

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which a large product by constants, of whose result pointwise work reads both halves and nothing reads more,
/// is two products: gated layers as SwiGLU, in all spellings.
[[nodiscard]] Graph split_gates(const Graph& graph);

}  // namespace sylvite
