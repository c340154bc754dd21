#include "lowering/plan/group_reads.h"

namespace sylvite {

std::set<ValueId> values_read(const Graph& graph, const Group& group) {
  const std::set<NodeId> inside(group.nodes.begin(), group.nodes.end());
  std::set<ValueId> read;
  for (const NodeId id : group.nodes) {
    for (const ValueId input : graph.node(id).inputs) {
      if (input == no_value) continue;
      const NodeId producer = graph.value(input).producer;
      if (producer == no_node || !inside.contains(producer)) read.insert(input);
    }
  }
  return read;
}

void add_writers(const Graph& graph, const std::map<ValueId, std::size_t>& writers, ValueId id,
                 std::set<std::size_t>& found) {
  if (const auto writer = writers.find(id); writer != writers.end()) {
    found.insert(writer->second);
    return;
  }
  const NodeId producer = graph.value(id).producer;
  if (producer == no_node) return;
  for (const ValueId input : graph.node(producer).inputs)
    if (input != no_value) add_writers(graph, writers, input, found);
}

}  // namespace sylvite
