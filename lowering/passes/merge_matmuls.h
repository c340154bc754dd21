#pragma once
// Horizontal fusion: several small products of one activation as one large product.

#include "sylvite/graph.h"

namespace sylvite {

/// The same graph in which matmuls of one value with constant matrices of equal shape, each with or each
/// without a constant bias, are one matmul with the matrices side by side; its slices stand for the results.
/// Only where every result goes to views or attention, which read slices in place: pointwise work would lose
/// its epilogue. Before: q = x Wq + bq, k = x Wk + bk, v = x Wv + bv. After: qkv = x [Wq Wk Wv] + [bq bk bv]
/// and three slices.
[[nodiscard]] Graph merge_matmuls(const Graph& graph);

}  // namespace sylvite
