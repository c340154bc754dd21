#include "base/rounding.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// Groups of at most `most_concat_inputs` neighbours, as equal as can be: few parts are copied more than twice.
std::vector<ValueId> joined_groups(Graph& graph, const std::vector<ValueId>& parts, std::int64_t axis) {
  const std::size_t count = ceil_div(parts.size(), most_concat_inputs);
  std::vector<ValueId> groups;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t group) {
      return parts.begin() + static_cast<std::ptrdiff_t>(group * parts.size() / count);
    };
    groups.push_back(graph.add(Op::concat, std::vector<ValueId>(at(i), at(i + 1)), {{"axis", axis}}));
  }
  return groups;
}

bool split_concat(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::concat || node.inputs.size() <= most_concat_inputs) return false;
  std::vector<ValueId> parts = rewriter.mapped(node.inputs);
  while (parts.size() > most_concat_inputs)
    parts = joined_groups(rewriter.graph(), parts, node.attributes.integer("axis"));
  rewriter.replace(node, Op::concat, std::move(parts), node.attributes);
  return true;
}

}  // namespace

Graph split_concats(const Graph& graph) {
  return rewrite_nodes(graph, split_concat);
}

}  // namespace sylvite
