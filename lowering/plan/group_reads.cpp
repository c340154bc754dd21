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

std::optional<Group> front_of_fold(const Graph& graph, const Group& group, NodeId fold) {
  const std::set<NodeId> all(group.nodes.begin(), group.nodes.end());
  const auto producers_in = [&](NodeId id, const std::set<NodeId>& nodes) {
    std::set<NodeId> found;
    for (const ValueId input : graph.node(id).inputs)
      if (const NodeId producer = input == no_value ? no_node : graph.value(input).producer;
          nodes.contains(producer))
        found.insert(producer);
    return found;
  };
  std::set<NodeId> front = {fold};
  for (auto id = all.rbegin(); id != all.rend(); ++id)  // nodes follow what they read
    if (front.contains(*id)) front.merge(producers_in(*id, all));
  if (front.size() == all.size()) return std::nullopt;
  for (const NodeId id : all) {
    if (front.contains(id)) continue;
    std::set<NodeId> read = producers_in(id, front);
    read.erase(fold);
    if (!read.empty()) return std::nullopt;
  }
  return Group{{front.begin(), front.end()}, graph.node(fold).outputs, group.reason};
}

}  // namespace sylvite
