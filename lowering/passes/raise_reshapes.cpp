// Before: y = mul(matmul(a, b), reshape(tanh(x)))    x [16, 512, 3072]
// After:  y = mul(matmul(a, b), tanh(reshape(x)))
// A reshape of what is in memory is free, but one of what is computed keeps it out of the kernel that reads it. Pointwise work
// that is read through equal reshapes alone is done on reshaped operands, if those are in memory anyway.

#include <algorithm>
#include <optional>
#include <vector>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/broadcast_dims.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

class Raiser {
 public:
  explicit Raiser(const Graph& graph)
      : graph_(graph),
        uses_(graph.uses()),
        is_output_(graph.values().size(), false),
        may_(graph.values().size(), false),
        dims_(graph.values().size()) {
    for (const ValueId output : graph.outputs) is_output_[output] = true;
    for (const Node& node : graph.nodes())
      may_[node.outputs[0]] = has_trait(node.op, OpTrait::pointwise) && node.outputs.size() == 1 &&
                              graph.type(node.outputs[0]).element_count() > 0;
    while (narrow()) {
    }
  }

  /// Work on reshaped operands stands for the work from here on.
  bool raise(GraphRewriter& rewriter, const Node& node) const {
    const ValueId made = node.outputs[0];
    if (node.op == Op::reshape && may_[node.inputs[0]]) {
      rewriter.set(made, rewriter.mapped(node.inputs[0]));
      return true;
    }
    if (!may_[made]) return false;
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs)
      inputs.push_back(id == no_value || may_[id]
                           ? rewriter.mapped(id)
                           : add_reshape(rewriter.graph(), rewriter.mapped(id), *dims_of_operand(id, made)));
    rewriter.set(made, rewriter.graph().add(node.op, std::move(inputs), node.attributes, node.name));
    return true;
  }

 private:
  /// Takes back what its readers or its operands do not allow, once; false when nothing had to be.
  bool narrow() {
    bool any = false;
    const auto& nodes = graph_.nodes();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      const ValueId made = node->outputs[0];
      if (!may_[made]) continue;
      const std::optional<Dims> wanted = wanted_dims(made);
      may_[made] = wanted.has_value();
      any = any || !may_[made];
      if (wanted) dims_[made] = *wanted;
    }
    for (const Node& node : nodes) {
      const ValueId made = node.outputs[0];
      const auto is_whole_operand = [&](ValueId id) { return id != no_value && is_whole(id, made); };
      if (!may_[made] || (std::ranges::all_of(node.inputs, [&](ValueId id) { return takes(id, made); }) &&
                          std::ranges::any_of(node.inputs, is_whole_operand)))
        continue;
      may_[made] = false;
      any = true;
    }
    return any;
  }

  /// What all readers want the value to be.
  [[nodiscard]] std::optional<Dims> wanted_dims(ValueId id) const {
    if (is_output_[id] || uses_[id].empty()) return std::nullopt;
    std::optional<Dims> wanted;
    for (const NodeId use : uses_[id]) {
      const Node& reader = graph_.node(use);
      const TensorType& type = graph_.type(reader.outputs[0]);
      const bool follows = may_[reader.outputs[0]] && type.shape == graph_.type(id).shape;
      if (reader.op != Op::reshape && !follows) return std::nullopt;
      const Dims dims = reader.op == Op::reshape ? type.dims() : dims_[reader.outputs[0]];
      if (wanted && *wanted != dims) return std::nullopt;
      wanted = dims;
    }
    return wanted;
  }

  /// Has the operand all elements of the result? Then it has its dims, but for ones ahead.
  [[nodiscard]] bool is_whole(ValueId id, ValueId made) const {
    return graph_.type(id).element_count() == graph_.type(made).element_count();
  }

  [[nodiscard]] std::optional<Dims> dims_of_operand(ValueId id, ValueId made) const {
    if (is_whole(id, made)) return dims_[made];
    return broadcast_dims(graph_.type(id).dims(), dims_[made], graph_.type(made).dims());
  }

  /// Is the operand in memory, or small, or raised itself?
  [[nodiscard]] bool takes(ValueId id, ValueId made) const {
    if (id == no_value) return true;
    if (may_[id]) return true;  // its readers agreed
    constexpr std::int64_t few = 16;
    const NodeId producer = graph_.value(id).producer;
    const bool is_stored = producer == no_node || graph_.node(producer).op == Op::reshape ||
                           graph_.type(id).element_count() * few <= graph_.type(made).element_count();
    return is_stored && graph_.type(id).element_count() > 0 && dims_of_operand(id, made).has_value();
  }

  const Graph& graph_;
  IdMap<std::vector<NodeId>> uses_;
  IdMap<bool> is_output_;
  IdMap<bool> may_;   ///< per value: pointwise work that is raised, as far as is known
  IdMap<Dims> dims_;  ///< of these: the dims that it then has
};

}  // namespace

Graph raise_reshapes(const Graph& graph) {
  const Raiser raiser(graph);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return raiser.raise(rewriter, node); });
}

}  // namespace sylvite
