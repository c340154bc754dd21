#pragma once
// How often a kernel computes again what it reads: through slices that overlap, or because elements of its result share it.

#include <set>
#include <vector>

#include "sylvite/graph.h"

namespace sylvite {

/// Would a kernel of these nodes, if it computed this large result too, compute each element so often that memory is the faster
/// way? Each slice that takes more than half of a value computes it again for itself, and so on down to what the kernel stores.
/// `readers`: per value.
[[nodiscard]] bool repeats_too_often(const Graph& graph, const std::set<NodeId>& kernel, NodeId id,
                                     const IdMap<std::vector<NodeId>>& readers);

/// Is the node the last of several operations on a value that so many elements of the kernel's result share that it is better
/// stored than computed for each of them, as the places that all channels of an image are sampled at? `root` makes the result.
[[nodiscard]] bool is_shared_work(const Graph& graph, NodeId root, NodeId id);

}  // namespace sylvite
