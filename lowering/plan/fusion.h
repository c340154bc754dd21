#pragma once
// Which operations are computed together: the nodes of a graph in groups, each of which becomes one kernel.

#include <string>
#include <vector>

#include "lowering/plan/joins.h"
#include "lowering/plan/plan.h"
#include "sylvite/graph.h"

namespace sylvite {

/// Nodes that one kernel computes. Only `outputs` reach memory; a node may stand in several groups when it is
/// cheaper to compute twice than to store.
struct Group {
  std::vector<NodeId> nodes;  ///< ascending, which is topological
  std::vector<ValueId>
      outputs;  ///< values written to memory: of one node, or as row_folds.h, twin_folds.h, join_elements.h say
  std::string reason;  ///< why these are together, in words
};

/// True for nodes that need no kernel: a reshape of a dense value names the same bytes, and a constant gets
/// its layout when the program is loaded.
[[nodiscard]] bool is_free(const Graph& graph, const Node& node);

/// Every value that a group reads from outside is a graph input, a constant, the result of a free node, or an
/// output of an earlier group. Nodes that nothing needs and joined concats are in no group.
[[nodiscard]] std::vector<Group> group_nodes(const Graph& graph, const Joins& joins,
                                             const LoweringOptions& options);

}  // namespace sylvite
