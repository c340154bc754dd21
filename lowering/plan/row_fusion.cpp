#include "lowering/plan/row_fusion.h"

#include <algorithm>
#include <set>

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

/// A fold over dims of which none is the innermost: elements of one row are folded in lanes of their own.
bool folds_columns(const Graph& graph, const Node& node) {
  if (node.op != Op::reduce_sum && node.op != Op::reduce_max && node.op != Op::reduce_min) return false;
  const std::vector<std::int64_t>& axes = node.attributes.integers("axes");
  return !axes.empty() && std::ranges::find(axes, graph.type(node.inputs[0]).rank() - 1) == axes.end();
}

bool gathers_rows(const Graph& graph, const Node& node) {
  constexpr std::int64_t short_row = 8;
  if (node.op != Op::gather) return false;
  const Extent row = graph.type(node.inputs[0]).shape.back();
  return graph.type(node.inputs[0]).rank() == 2 && node.attributes.integer("axis") == 0 && row.is_known() &&
         row.known() >= short_row;
}

/// The gathers of rows that a fold reads, and the work on these between both, with numbers of each row; empty where there is
/// none, or where another reads any of it.
std::vector<NodeId> gathered_rows(const Graph& graph, const Node& fold,
                                  const IdMap<std::vector<NodeId>>& readers) {
  constexpr std::size_t most_work = 32;
  std::set<NodeId> nodes;
  bool has_rows = false;
  for (std::vector<ValueId> left = {fold.inputs[0]}; !left.empty();) {
    const ValueId id = left.back();
    left.pop_back();
    const Value& value = graph.value(id);
    const bool is_output = std::ranges::find(graph.outputs, id) != graph.outputs.end();
    const bool is_dense = value.type.layout.channel_block == 0;
    if (is_output || value.producer == no_node || readers[id].size() != 1 || !is_dense) return {};
    const Node& node = graph.node(value.producer);
    nodes.insert(value.producer);
    has_rows = has_rows || gathers_rows(graph, node);
    if (gathers_rows(graph, node)) continue;
    if (role_of(node) != Role::pointwise || cost_of(graph, node) > Prologue::cheap ||
        nodes.size() > most_work)
      return {};
    for (const ValueId input : node.inputs) {
      const TensorType& type = graph.type(input);
      if (type.rank() > 0 && type.shape.back() != 1) left.push_back(input);
    }
  }
  return has_rows ? std::vector<NodeId>(nodes.begin(), nodes.end()) : std::vector<NodeId>{};
}

}  // namespace

std::vector<NodeId> rows_ahead(const Graph& graph, NodeId reader, const IdMap<std::vector<NodeId>>& readers,
                               const LoweringOptions& options) {
  const Node& last = graph.node(reader);
  if (!options.refuse_template && options.fuse && folds_columns(graph, last))
    return gathered_rows(graph, last, readers);
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
