#include "lowering/algorithms/problem_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

/// The index of body input `id`, or -1.
int input_index(const Graph& body, ValueId id) {
  const auto found = std::find(body.inputs.begin(), body.inputs.end(), id);
  return found == body.inputs.end() ? -1 : static_cast<int>(found - body.inputs.begin());
}

}  // namespace

IdMap<bool> downstream_of(const Graph& body, ValueId root) {
  IdMap<bool> depends(body.values().size(), false);
  depends[root] = true;
  for (const Node& node : body.nodes()) {
    const bool reads = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId id) { return id != no_value && depends[id]; });
    if (!reads) continue;
    for (const ValueId id : node.outputs) depends[id] = true;
  }
  return depends;
}

std::string body_refusal(const Kernel& kernel) {
  const Graph& body = kernel.body;
  if (body.outputs.size() != 1)
    return fmt::format("it has {} outputs, a template makes one", body.outputs.size());
  const ValueId root = body.node(kernel.anchor).outputs.at(0);
  const TensorType& type = body.type(root);
  const IdMap<bool> depends = downstream_of(body, root);
  if (!depends[body.outputs[0]]) return "its output does not depend on the anchor";
  for (std::size_t i = 0; i < body.nodes().size(); ++i) {
    const Node& node = body.nodes()[i];
    if (static_cast<NodeId>(i) == kernel.anchor) continue;
    const OpInfo& info = op_info(node.op);
    const bool after = depends[node.outputs.at(0)];
    if (after && !info.has(OpTrait::pointwise))
      return fmt::format("{} after the anchor is not pointwise", info.name);
    const bool is_known = info.has(OpTrait::pointwise) || info.has(OpTrait::view) ||
                          info.has(OpTrait::creation) || node.op == Op::to_layout;
    if (!is_known) return fmt::format("its body also has {}", info.name);
    const TensorType& own = body.type(node.outputs.at(0));
    if (after && (own.shape != type.shape || own.layout != type.layout))
      return fmt::format("{} after the anchor changes the shape", info.name);
  }
  return "";
}

bool has_wide_rows(const Graph& body, const Node& node) {
  return node.op == Op::matmul && body.type(node.inputs.at(0)).dtype == DType::f32 &&
         body.type(node.inputs.at(1)).dtype == DType::bf16;
}

std::string element_refusal(const Graph& body, const Node& node) {
  const DType element = body.type(node.inputs.at(0)).dtype;
  const bool has_steps = element == DType::i16 || element == DType::u8;
  if (has_steps && body.type(node.outputs.at(0)).dtype == DType::i32) return "";
  const bool is_known =
      element == DType::f32 || element == DType::bf16 || (element == DType::f64 && node.op == Op::matmul);
  std::vector<ValueId> values = node.inputs;
  if (node.op == Op::conv || has_wide_rows(body, node)) values.resize(1);
  values.push_back(node.outputs.at(0));
  for (const ValueId id : values) {
    if (id != no_value && (!is_known || body.type(id).dtype != element)) {
      return fmt::format("value '{}' is {}, the template takes f32 or bf16", body.value(id).name,
                         dtype_name(body.type(id).dtype));
    }
  }
  return "";
}

bool is_computed(const Graph& body, ValueId id) {
  const NodeId producer = body.value(id).producer;
  if (producer == no_node) return false;
  const Node& node = body.node(producer);
  if (!has_trait(node.op, OpTrait::view)) return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return input != no_value && is_computed(body, input); });
}

OwnOperand find_weight(const Kernel& kernel, ValueId operand) {
  const OwnOperand own = own_operand(kernel.body, kernel.body.uses(), operand);
  const int index = input_index(kernel.body, own.id);
  return index >= 0 && kernel.input_is_weight.at(static_cast<std::size_t>(index)) ? own : OwnOperand{};
}

}  // namespace sylvite
