#pragma once
// A group as a graph of its own: what its kernel is made of.

#include <vector>

#include "lowering/plan/fusion.h"
#include "lowering/plan/kernel.h"
#include "sylvite/graph.h"

namespace sylvite {

struct GroupBody {
  Graph body;
  std::vector<ValueId> inputs;  ///< per body input: which value of the whole graph it is
  std::vector<bool> is_weight;  ///< per body input: a constant, as it is or under another name
  std::vector<NodeId> nodes;    ///< per body node: which node of the whole graph it is
};

/// Does it stand in the text of kernels that read it? Other constants are arguments.
[[nodiscard]] bool is_in_text(const Value& value);

/// Copies the nodes that the outputs need, depth first from there, so that equal groups give equal bodies
/// whatever the order in which the model lists its nodes.
[[nodiscard]] GroupBody body_of(const Graph& graph, const Group& group);
/// The kernel that this makes.
[[nodiscard]] Kernel kernel_of(const Graph& graph, const Group& group);

}  // namespace sylvite
