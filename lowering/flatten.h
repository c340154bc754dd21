#pragma once
// Reshapes out of the way of fusion: they are free between kernels but split what could be one.

#include "frontend/graph.h"

namespace sylvite {

/// The same graph in which
/// - matmul of [..., M, K] with a matrix [K, N] is two-dimensional: [B*M, K] x [K, N];
/// - pointwise work and last-axis normalisation on its result stay two-dimensional, the reshape after them;
/// - reshape(slice(x)) that splits the sliced axis becomes slice(reshape(x)), whose reshape is an alias.
[[nodiscard]] Graph flatten(const Graph& graph);

}  // namespace sylvite
