#include "lowering/fusion.h"

namespace sylvite {
namespace {

std::vector<bool> find_live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes().size(), false);
  auto mark = [&](ValueId id) {
    if (id != no_value && graph.value(id).producer != no_node) {
      live[static_cast<std::size_t>(graph.value(id).producer)] = true;
    }
  };
  for (ValueId output : graph.outputs) mark(output);
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    if (!live[i]) continue;
    for (ValueId input : graph.nodes()[i].inputs) mark(input);
  }
  return live;
}

}  // namespace

bool is_free(const Graph& graph, const Node& node) {
  if (node.op == Op::to_layout) return graph.is_constant(node.inputs[0]);
  return node.op == Op::reshape && graph.type(node.inputs[0]).layout.channel_block == 0;
}

std::vector<Group> group_nodes(const Graph& graph, const LoweringOptions& options) {
  (void)options;
  const std::vector<bool> live = find_live_nodes(graph);
  std::vector<Group> groups;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (live[i] && !is_free(graph, node)) groups.push_back({{static_cast<NodeId>(i)}, node.outputs, "alone"});
  }
  return groups;
}

}  // namespace sylvite
