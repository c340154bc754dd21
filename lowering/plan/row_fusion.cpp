#include "lowering/plan/row_fusion.h"

#include <algorithm>

#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/fusion_rules.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_products = 64;  ///< per element computed by rows

std::int64_t groups_of(const Node& conv) {
  return conv.attributes.integer("groups");
}

bool is_depthwise(const Graph& graph, const Node& node) {
  if (node.op != Op::conv) return false;
  const std::int64_t groups = groups_of(node);
  return groups > 1 && groups == graph.type(node.inputs[0]).dims()[1] &&
         groups == graph.type(node.outputs[0]).dims()[1];
}

bool is_suitable(const Graph& graph, const Node& conv, const IdMap<std::vector<NodeId>>& readers) {
  const TensorType& type = graph.type(conv.outputs[0]);
  return type.rank() == 4 && type.layout.channel_block > 0 && type.dtype == DType::f32 &&
         graph.is_constant(own_operand(graph, readers, conv.inputs[1]).id);
}

bool has_few_products(const Graph& graph, const Node& conv) {
  const TensorType& filter = graph.type(conv.inputs[1]);
  return groups_of(conv) == 1 && filter.element_count() / filter.dims()[0] <= most_products;
}

/// The one operand of a pointwise node that is no constant of one element, when it has the result's type.
ValueId only_operand(const Graph& graph, const Node& node) {
  ValueId found = no_value;
  for (const ValueId id : node.inputs) {
    const Value& value = graph.value(id);
    if (value.constant && value.constant->size() == 1) continue;
    if (found != no_value) return no_value;
    found = id;
  }
  return found != no_value && graph.type(found) == graph.type(node.outputs[0]) ? found : no_value;
}

}  // namespace

std::vector<NodeId> rows_ahead(const Graph& graph, NodeId reader, const IdMap<std::vector<NodeId>>& readers,
                               const LoweringOptions& options) {
  const Node& last = graph.node(reader);
  if (options.large_bytes == 0 || !is_depthwise(graph, last) || !is_suitable(graph, last, readers)) return {};
  const TensorType& type = graph.type(last.inputs[0]);
  const bool is_large = type.element_count() * 4 > options.large_bytes;
  if (!is_large || type.layout != graph.type(last.outputs[0]).layout) return {};
  std::vector<NodeId> nodes;
  for (ValueId id = last.inputs[0];;) {
    const Value& value = graph.value(id);
    const bool is_output = std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end();
    if (is_output || value.producer == no_node || readers[id].size() != 1) return {};
    const Node& node = graph.node(value.producer);
    nodes.insert(nodes.begin(), value.producer);
    if (node.op == Op::conv)
      return is_suitable(graph, node, readers) && has_few_products(graph, node) ? nodes
                                                                                : std::vector<NodeId>{};
    if (!has_trait(node.op, OpTrait::pointwise)) return {};
    id = only_operand(graph, node);
    if (id == no_value) return {};
  }
}

}  // namespace sylvite
