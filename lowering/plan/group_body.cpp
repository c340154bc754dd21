#include "lowering/plan/group_body.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "frontend/graph/copy.h"
#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "frontend/values/size_table.h"

namespace sylvite {
namespace {

bool is_weight(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.constant) return true;
  if (value.producer == no_node) return false;
  const Node& node = graph.node(value.producer);
  return is_free(graph, node) && is_weight(graph, node.inputs[0]);
}

/// A table that is longer at other sizes: products read it as it lies, as packed it would be another kernel's at each size.
bool is_open_table(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  return value.constant && value.type.layout == Layout{} && follows_open_sizes(*value.constant);
}

bool multiplies(const Graph& graph, const Group& group) {
  return std::ranges::any_of(group.nodes, [&](NodeId id) { return graph.node(id).op == Op::matmul; });
}

/// Does it make integers that stand for numbers, or numbers of such integers?
bool counts_steps(const Graph& graph, const Node& node) {
  if (node.op == Op::round && node.inputs.size() > 1) return true;
  if (node.op != Op::cast || graph.type(node.outputs[0]).dtype != DType::f32) return false;
  const DType from = graph.type(node.inputs[0]).dtype;
  const NodeId producer = graph.value(node.inputs[0]).producer;
  const bool is_sum = producer != no_node && op_info(graph.node(producer).op).facts.multiplies();
  return (is_signed_integer(from) || is_unsigned_integer(from)) && (dtype_bits(from) <= 8 || is_sum);
}

/// Are numbers arguments of the kernel, which else stand in its text? Quantised layers differ in scales and zero points
/// alone: so equal layers are one kernel.
bool takes_numbers(const Graph& graph, const Group& group) {
  return std::ranges::any_of(group.nodes, [&](NodeId id) { return counts_steps(graph, graph.node(id)); });
}

bool may_read_argument(Op op) {
  return op == Op::add || op == Op::sub || op == Op::mul || op == Op::round;
}

/// Sums of products are compiled as if no number were infinite or NaN: one that stood in the text would make them anything.
bool must_be_argument(const Graph& graph, const Node& reader, ValueId id) {
  if (id == no_value || !op_info(reader.op).facts.multiplies()) return false;
  const std::optional<double> number = scalar_constant(graph, id);
  return number && !std::isfinite(*number);
}

class Extractor {
 public:
  Extractor(const Graph& graph, const Group& group)
      : graph_(graph),
        inside_(group.nodes.begin(), group.nodes.end()),
        takes_numbers_(takes_numbers(graph, group)),
        multiplies_(multiplies(graph, group)),
        copier_(graph) {
    for (const ValueId output : group.outputs) visit(output);
    result_.body = std::move(copier_.graph());
    result_.body.outputs = copier_.mapped(group.outputs);
  }
  [[nodiscard]] GroupBody take() { return std::move(result_); }

 private:
  void visit(ValueId id, bool may_be_argument = false) {
    if (id == no_value || copier_.is_mapped(id)) return;
    const Value& value = graph_.value(id);
    if (value.producer != no_node && inside_.contains(value.producer)) {
      const Node& node = graph_.node(value.producer);
      for (const ValueId input : node.inputs)
        visit(input, (takes_numbers_ && may_read_argument(node.op)) || must_be_argument(graph_, node, input));
      copier_.copy(node);
      result_.nodes.push_back(value.producer);
    } else if (is_in_text(value) && !may_be_argument) {
      (void)copier_.mapped(id);
    } else {
      result_.inputs.push_back(id);
      const bool is_read_as_it_lies = multiplies_ && is_open_table(graph_, id);
      result_.is_weight.push_back(is_weight(graph_, id) && !is_read_as_it_lies);
      copier_.add_input(id);
    }
  }

  const Graph& graph_;
  std::set<NodeId> inside_;
  bool takes_numbers_;
  bool multiplies_;
  GraphCopier copier_;
  GroupBody result_;
};

}  // namespace

bool is_in_text(const Value& value) {
  return value.constant && value.constant->size() == 1 && !follows_open_sizes(*value.constant);
}

GroupBody body_of(const Graph& graph, const Group& group) {
  return Extractor(graph, group).take();
}

Kernel kernel_of(const Graph& graph, const Group& group) {
  GroupBody body = body_of(graph, group);
  return make_kernel(body.body, std::move(body.is_weight));
}

}  // namespace sylvite
