#pragma once
// Reshapes out of the way of fusion: they are free between kernels but split what could be one.

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which
/// - matmul of [..., M, K] with a matrix [K, N] is two-dimensional: [B*M, K] x [K, N];
/// - reductions keep their dims, with a reshape after them;
/// - pointwise work and last-axis normalisation on such results come before the reshape;
/// - chains of reshape, slice and transpose stand in the order of views.h, merged where they can be.
[[nodiscard]] Graph flatten(const Graph& graph);

}  // namespace sylvite
