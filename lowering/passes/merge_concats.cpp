// Before: y = concat(a, b, along n of [outer..., n, inner...])   where inner is short and not 1
// After:  y = concat(a, b, along n * inner of [outer, n * inner])

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/fusion_rules.h"

namespace sylvite {
namespace {

/// Vectors along fewer elements are filled by several rows, of which each element asks for its part.
constexpr std::int64_t short_row = 16;

/// Does a value lie in memory as it is, and not as a view that the concat reads?
bool is_stored(const Graph& graph, ValueId id) {
  const NodeId producer = graph.value(id).producer;
  return producer == no_node || role_of(graph.node(producer)) != Role::view;
}

bool merge_rows(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::concat) return false;
  const Graph& source = rewriter.source();
  const TensorType& type = source.type(node.outputs[0]);
  if (!type.is_known() || type.element_count() == 0) return false;
  const Dims dims = type.dims();
  const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
  const std::int64_t inner = product(dims, axis + 1, dims.size());
  if (axis == 1 && dims.size() >= 4) return false;  // channels of images may lie in blocks
  if (inner == 1 || inner >= short_row || !std::ranges::all_of(node.inputs, [&](ValueId id) {
        return is_stored(source, id) && source.type(id).dims()[axis] * inner >= short_row;
      }))
    return false;
  Graph& graph = rewriter.graph();
  const std::int64_t outer = product(dims, 0, axis);
  std::vector<ValueId> parts;
  for (const ValueId id : node.inputs)
    parts.push_back(
        add_reshape(graph, rewriter.mapped(id), {outer, source.type(id).element_count() / outer}));
  const ValueId joined = graph.add(Op::concat, parts, {{"axis", std::int64_t{1}}}, node.name);
  rewriter.set(node.outputs[0], add_reshape(graph, joined, dims));
  return true;
}

}  // namespace

Graph merge_concats(const Graph& graph) {
  return rewrite_nodes(graph, merge_rows);
}

}  // namespace sylvite
