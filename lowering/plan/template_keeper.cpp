#include "lowering/plan/template_keeper.h"

#include "frontend/ops/op_table.h"
#include "lowering/plan/group_body.h"

namespace sylvite {

bool TemplateKeeper::asks_about(NodeId anchor) const {
  if (!options_.refuse_template || anchor == no_node) return false;
  const Op op = graph_.node(anchor).op;
  return has_trait(op, OpTrait::matmul) || has_trait(op, OpTrait::convolution) ||
         has_trait(op, OpTrait::attention) || op == Op::max_pool_gradient;
}

const std::string& TemplateKeeper::refusal(const NodeSet& nodes, NodeId root) {
  const auto [entry, added] = refusals_.try_emplace({nodes, root});
  if (added) {
    const GroupBody group = body_of(graph_, {{nodes.begin(), nodes.end()}, graph_.node(root).outputs, ""});
    entry->second = options_.refuse_template(make_kernel(group.body, group.is_weight));
  }
  return entry->second;
}

const std::string& TemplateKeeper::loss(NodeSet nodes, NodeId added, NodeId root) {
  static const std::string none;
  if (!refusal(nodes, root).empty()) return none;
  nodes.insert(added);
  return refusal(nodes, root);
}

}  // namespace sylvite
