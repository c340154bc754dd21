#pragma once
// Folds over several dims of values that are dense.

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which norms and reductions over several of the last dims of dense values are over one, a product of these.
/// For graphs whose layouts are known.
[[nodiscard]] Graph merge_dense_folds(const Graph& graph);

}  // namespace sylvite
