#include "lowering/plan/repeats.h"

#include <algorithm>
#include <cstdint>
#include <map>

#include "lowering/plan/fusion_rules.h"

namespace sylvite {
namespace {

bool takes_most(const Graph& graph, const Node& node) {
  return node.op == Op::slice &&
         graph.type(node.outputs[0]).element_count() * 2 > graph.type(node.inputs[0]).element_count();
}

/// How often an element of the node's result is computed.
int computed_times(const Graph& graph, const std::set<NodeId>& kernel, NodeId id,
                   const IdMap<std::vector<NodeId>>& readers) {
  constexpr int most = 1 << 20;
  std::map<NodeId, int> times;
  const auto count = [&](NodeId each) {
    int in_place = 0, by_slices = 0;
    for (const ValueId output : graph.node(each).outputs) {
      const std::set<NodeId> distinct(readers[output].begin(), readers[output].end());
      for (const NodeId reader : distinct) {
        const auto found = times.find(reader);
        if (found == times.end()) continue;
        if (takes_most(graph, graph.node(reader)))
          by_slices = std::min(most, by_slices + found->second);
        else
          in_place = std::max(in_place, found->second);
      }
    }
    return std::max(1, in_place + by_slices);
  };
  for (auto each = kernel.rbegin(); each != kernel.rend() && *each > id; ++each) times[*each] = count(*each);
  return count(id);
}

}  // namespace

bool repeats_too_often(const Graph& graph, const std::set<NodeId>& kernel, NodeId id,
                       const IdMap<std::vector<NodeId>>& readers) {
  constexpr int too_often = 4;
  constexpr std::int64_t least_bytes = 1 << 20;
  return role_of(graph.node(id)) == Role::pointwise &&
         graph.type(graph.node(id).outputs[0]).byte_size() >= least_bytes &&
         computed_times(graph, kernel, id, readers) >= too_often;
}

}  // namespace sylvite
