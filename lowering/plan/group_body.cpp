#include "lowering/plan/group_body.h"

#include <set>
#include <utility>

#include "frontend/graph/copy.h"

namespace sylvite {
namespace {

bool is_weight(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.constant) return true;
  if (value.producer == no_node) return false;
  const Node& node = graph.node(value.producer);
  return is_free(graph, node) && is_weight(graph, node.inputs[0]);
}

class Extractor {
 public:
  Extractor(const Graph& graph, const Group& group)
      : graph_(graph), inside_(group.nodes.begin(), group.nodes.end()), copier_(graph) {
    for (const ValueId output : group.outputs) visit(output);
    result_.body = std::move(copier_.graph());
    result_.body.outputs = copier_.mapped(group.outputs);
  }
  [[nodiscard]] GroupBody take() { return std::move(result_); }

 private:
  void visit(ValueId id) {
    if (id == no_value || copier_.is_mapped(id)) return;
    const Value& value = graph_.value(id);
    if (value.producer != no_node && inside_.contains(value.producer)) {
      const Node& node = graph_.node(value.producer);
      for (const ValueId input : node.inputs) visit(input);
      copier_.copy(node);
      result_.nodes.push_back(value.producer);
    } else if (value.constant && value.constant->size() == 1) {
      (void)copier_.mapped(id);
    } else {
      result_.inputs.push_back(id);
      result_.is_weight.push_back(is_weight(graph_, id));
      copier_.add_input(id);
    }
  }

  const Graph& graph_;
  std::set<NodeId> inside_;
  GraphCopier copier_;
  GroupBody result_;
};

}  // namespace

GroupBody body_of(const Graph& graph, const Group& group) {
  return Extractor(graph, group).take();
}

Kernel kernel_of(const Graph& graph, const Group& group) {
  GroupBody body = body_of(graph, group);
  return make_kernel(body.body, std::move(body.is_weight));
}

}  // namespace sylvite
