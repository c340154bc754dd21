#include "lowering/plan/template_keeper.h"

#include <algorithm>

#include "frontend/ops/op_table.h"
#include "lowering/plan/fusion_rules.h"
#include "lowering/plan/group_body.h"

namespace sylvite {

namespace {

/// Norms of groups of channels, softmax along columns, and norms of rows of which nothing but a template makes more than one
/// thread, and that are too long for that.
bool has_norm_of_template(const Graph& graph, const Node& node) {
  if (node.op == Op::layer_norm && node.attributes.has("groups")) return true;
  constexpr std::int64_t least = 16, enough = 64;
  if (node.op != Op::softmax && node.op != Op::log_softmax && !has_trait(node.op, OpTrait::row_norm))
    return false;
  const Shape& shape = graph.type(node.outputs[0]).shape;
  if (node.attributes.has("axis") &&
      node.attributes.integer("axis") + 1 < static_cast<std::int64_t>(shape.size()))
    return node.op == Op::softmax || node.op == Op::log_softmax;
  return !shape.empty() && shape.back().is_known() && shape.back().known() >= least &&
         shape.back().known() < enough;
}

/// Places of extremes, and folds of all there is: without a template one thread does it.
bool has_fold_of_template(const Graph& graph, const Node& node) {
  if (!has_trait(node.op, OpTrait::reduction)) return false;
  constexpr std::int64_t least = 32;
  const Shape& shape = graph.type(node.inputs[0]).shape;
  if (shape.empty() || (shape.back().is_known() && shape.back().known() < least)) return false;
  return !node.attributes.has("axes") || graph.type(node.outputs[0]).shape.product() == Extent(1);
}

}  // namespace

bool TemplateKeeper::asks_about(NodeId anchor) const {
  if (!options_.refuse_template || anchor == no_node) return false;
  const Node& node = graph_.node(anchor);
  return has_trait(node.op, OpTrait::matmul) || has_trait(node.op, OpTrait::convolution) ||
         has_trait(node.op, OpTrait::attention) || has_trait(node.op, OpTrait::scatter) ||
         node.op == Op::max_pool_gradient || has_norm_of_template(graph_, node) ||
         has_fold_of_template(graph_, node);
}

bool TemplateKeeper::asks_about_turned(const NodeSet& nodes, NodeId anchor) const {
  constexpr std::int64_t much = 1 << 20;  // bytes that take longer to read than a launch takes
  return options_.refuse_template && has_trait(graph_.node(anchor).op, OpTrait::reduction) &&
         graph_.type(graph_.node(anchor).inputs[0]).byte_size() >= much &&
         std::ranges::any_of(nodes, [&](NodeId id) { return role_of(graph_.node(id)) == Role::view; });
}

const std::string& TemplateKeeper::refusal(const NodeSet& nodes, NodeId root) {
  const auto [entry, added] = refusals_.try_emplace({nodes, root});
  if (added)
    entry->second = options_.refuse_template(
        kernel_of(graph_, {{nodes.begin(), nodes.end()}, graph_.node(root).outputs, ""}));
  return entry->second;
}

const std::string& TemplateKeeper::loss(NodeSet nodes, NodeId added, NodeId root) {
  static const std::string none;
  if (!refusal(nodes, root).empty()) return none;
  nodes.insert(added);
  return refusal(nodes, root);
}

}  // namespace sylvite
