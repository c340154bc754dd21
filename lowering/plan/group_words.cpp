#include "lowering/plan/group_words.h"

#include <fmt/format.h>

#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

std::string names(const Graph& graph, const std::set<NodeId>& nodes) {
  std::string text;
  for (const NodeId id : nodes)
    text += (text.empty() ? "" : " ") + std::string(op_info(graph.node(id).op).name);
  return text;
}

}  // namespace

std::string what_is_grouped(const Graph& graph, const std::set<NodeId>& nodes, NodeId anchor,
                            const std::set<NodeId>& ahead) {
  if (anchor == no_node) return names(graph, nodes);
  std::set<NodeId> after = nodes;
  after.erase(anchor);
  for (const NodeId id : ahead) after.erase(id);
  std::string text(op_info(graph.node(anchor).op).name);
  if (!ahead.empty()) text += "; reads through " + names(graph, ahead);
  if (!after.empty()) text += "; then " + names(graph, after);
  return text;
}

std::string why_group_ends(const Graph& graph, NodeId root, const IdMap<std::vector<NodeId>>& readers,
                           const IdMap<bool>& is_output) {
  if (graph.node(root).outputs.size() != 1) return "";
  const ValueId output = graph.node(root).outputs[0];
  if (is_output[output]) return "; ends: output";
  const std::set<NodeId> distinct(readers[output].begin(), readers[output].end());
  if (distinct.size() > 1) return fmt::format("; ends: {} readers", distinct.size());
  return distinct.empty()
             ? ""
             : fmt::format("; ends: {} reads memory", op_info(graph.node(*distinct.begin()).op).name);
}

}  // namespace sylvite
