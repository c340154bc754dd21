#pragma once
// Why nodes are one group, in words.

#include <set>
#include <string>
#include <vector>

#include "sylvite/graph.h"
#include "sylvite/id_map.h"

namespace sylvite {

/// The operations by their place: those that the anchor reads through are `ahead`. Without an anchor, no_node, all are alike.
[[nodiscard]] std::string what_is_grouped(const Graph& graph, const std::set<NodeId>& nodes, NodeId anchor,
                                          const std::set<NodeId>& ahead);

/// Why no reader of the root's result is in the group, as a clause behind these; "" where there is none. `readers` and
/// `is_output` are per value.
[[nodiscard]] std::string why_group_ends(const Graph& graph, NodeId root,
                                         const IdMap<std::vector<NodeId>>& readers,
                                         const IdMap<bool>& is_output);

}  // namespace sylvite
