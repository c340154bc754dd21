#pragma once
// What nodes cost by their extents: for bounds on folding constants, and for estimates of speed.

#include <cstdint>

#include "sylvite/graph.h"

namespace sylvite {

/// Terms of one element of a node's first result, as OpFacts says: 1 where there is nothing to add up. REQUIRES
/// known shapes.
[[nodiscard]] double terms_of(const Graph& graph, const Node& node);
/// Those that are products, which contractions add up; 0 for all other nodes.
[[nodiscard]] double products_of(const Graph& graph, const Node& node);

/// Scalar steps that the reference evaluation takes, roughly; at most 2^60. REQUIRES known shapes.
[[nodiscard]] std::int64_t evaluation_work(const Graph& graph, const Node& node);

}  // namespace sylvite
