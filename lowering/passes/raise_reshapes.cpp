// Before: y = mul(matmul(a, b), reshape(tanh(x)))    x [16, 512, 3072]
// After:  y = mul(matmul(a, b), tanh(reshape(x)))
// A reshape of what is in memory is free, but one of what is computed keeps it out of the kernel that reads it. Pointwise work
// that is read through equal reshapes alone is done on reshaped operands, if those are in memory anyway, or cost no more to
// compute again than to read: what others read as it is stays for these. A fold that keeps its dims, of which such work is
// made, drops them, so that what stands behind the reshape joins it:
// Before: y = add(reshape(log(reduce_sum(x))), z)    x [32, 17, 17], kept dims [32, 1, 17], z [32, 17]
// After:  y = add(log(reduce_sum(x)), z)             the sum drops its dims

#include <algorithm>
#include <optional>
#include <vector>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/broadcast_dims.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/fusion_rules.h"

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
      may_[node.outputs[0]] = (has_trait(node.op, OpTrait::pointwise) || keeps_dims(node)) &&
                              node.outputs.size() == 1 && graph.type(node.outputs[0]).element_count() > 0;
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
    if (keeps_dims(node)) {
      Attributes attributes = node.attributes;
      attributes.set("keepdims", std::int64_t{0});
      rewriter.set(made, rewriter.graph().add(node.op, rewriter.mapped(node.inputs), attributes, node.name));
      return true;
    }
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId id : node.inputs) inputs.push_back(reshaped(rewriter, id, made, dims_[made]));
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
      may_[made] = wanted.has_value() && (!keeps_dims(*node) || drops_dims(*node, *wanted));
      any = any || !may_[made];
      if (wanted) dims_[made] = *wanted;
    }
    for (const Node& node : nodes) {
      const ValueId made = node.outputs[0];
      const auto is_whole_operand = [&](ValueId id) { return id != no_value && is_whole(id, made); };
      if (!may_[made] || keeps_dims(node) ||
          (std::ranges::all_of(node.inputs, [&](ValueId id) { return takes(id, made); }) &&
           std::ranges::any_of(node.inputs, is_whole_operand)))
        continue;
      may_[made] = false;
      any = true;
    }
    return any;
  }

  [[nodiscard]] static bool keeps_dims(const Node& node) {
    return has_trait(node.op, OpTrait::reduction) && node.outputs.size() == 1 &&
           node.attributes.has("axes") && node.attributes.integer("keepdims") != 0;
  }

  /// Is what a fold's readers want its result without the folded dims, and does work stand behind that?
  [[nodiscard]] bool drops_dims(const Node& fold, const Dims& wanted) const {
    const Dims &axes = fold.attributes.integers("axes"), dims = graph_.type(fold.outputs[0]).dims();
    Dims left;
    for (std::size_t d = 0; d < dims.size(); ++d)
      if (std::ranges::find(axes, static_cast<std::int64_t>(d)) == axes.end()) left.push_back(dims[d]);
    return left == wanted && std::ranges::all_of(uses_[fold.outputs[0]], [&](NodeId use) {
             return graph_.node(use).op != Op::reshape && meets_work(graph_.node(use).outputs[0]);
           });
  }
  /// Is some reshape of what is raised read by pointwise work?
  [[nodiscard]] bool meets_work(ValueId id) const {
    return std::ranges::any_of(uses_[id], [&](NodeId use) {
      const ValueId made = graph_.node(use).outputs[0];
      if (graph_.node(use).op != Op::reshape) return may_[made] && meets_work(made);
      return std::ranges::any_of(
          uses_[made], [&](NodeId reader) { return has_trait(graph_.node(reader).op, OpTrait::pointwise); });
    });
  }

  /// What all readers want the value to be.
  [[nodiscard]] std::optional<Dims> wanted_dims(ValueId id) const {
    if (is_output_[id] || uses_[id].empty()) return std::nullopt;
    std::optional<Dims> wanted;
    for (const NodeId use : uses_[id]) {
      const Node& reader = graph_.node(use);
      const TensorType& type = graph_.type(reader.outputs[0]);
      // A fold over dims of one element has the shape of its operand, too, but not the operand's new dims.
      const bool follows =
          may_[reader.outputs[0]] && !keeps_dims(reader) && type.shape == graph_.type(id).shape;
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

  /// The operand's dims where the result has `dims`.
  [[nodiscard]] std::optional<Dims> dims_of_operand(ValueId id, ValueId made, const Dims& dims) const {
    if (is_whole(id, made)) return dims;
    return broadcast_dims(graph_.type(id).dims(), dims, graph_.type(made).dims());
  }

  /// Is the operand in memory, or small, or raised itself, or repeated?
  [[nodiscard]] bool takes(ValueId id, ValueId made) const {
    if (id == no_value || may_[id]) return true;  // its readers agreed
    const std::optional<Dims> dims = dims_of_operand(id, made, dims_[made]);
    return graph_.type(id).element_count() > 0 && dims &&
           (is_stored(id, made) || is_repeated(id, *dims, most_repeated));
  }

  [[nodiscard]] bool is_stored(ValueId id, ValueId made) const {
    constexpr std::int64_t few = 16;
    const NodeId producer = graph_.value(id).producer;
    return producer == no_node || graph_.node(producer).op == Op::reshape || is_output_[id] ||
           graph_.type(id).element_count() * few <= graph_.type(made).element_count() ||
           std::ranges::any_of(uses_[id], [&](NodeId use) { return reads_memory(graph_.node(use), id); }) ||
           is_repeated_fold(id) || is_product_for_several(id);
  }

  /// A product or work on one, which a kernel makes once for several readers.
  [[nodiscard]] bool is_product_for_several(ValueId id) const {
    return uses_[id].size() > 1 && comes_of(id, most_repeated, [](const Node& node) {
             return node.op == Op::matmul || node.op == Op::conv;
           });
  }

  /// A fold's result, or work on it, that a kernel reads for many elements of its own.
  [[nodiscard]] bool is_repeated_fold(ValueId id) const {
    const std::int64_t elements = graph_.type(id).element_count();
    const auto is_fold = [](const Node& node) { return has_trait(node.op, OpTrait::reduction); };
    return comes_of(id, most_repeated, is_fold) && std::ranges::any_of(uses_[id], [&](NodeId use) {
             return graph_.type(graph_.node(use).outputs[0]).element_count() > elements;
           });
  }
  /// Is it such an operation's result, or made of it by a chain of pointwise work?
  [[nodiscard]] bool comes_of(ValueId id, int most, bool (*is_such)(const Node&)) const {
    const NodeId producer = graph_.value(id).producer;
    if (most == 0 || producer == no_node) return false;
    const Node& node = graph_.node(producer);
    return is_such(node) ||
           (has_trait(node.op, OpTrait::pointwise) && std::ranges::any_of(node.inputs, [&](ValueId input) {
              return input != no_value && is_whole(input, id) && comes_of(input, most - 1, is_such);
            }));
  }

  [[nodiscard]] static bool reads_memory(const Node& reader, ValueId id) {
    if (role_of(reader) != Role::anchor) return false;
    for (std::size_t i = 0; i < reader.inputs.size(); ++i)
      if (reader.inputs[i] == id && prologue_of(reader, i) < Prologue::cheap) return true;
    return false;
  }

  /// May it be computed once more, with `dims`, of what is in memory, by a chain of at most `most` operations?
  [[nodiscard]] bool is_repeated(ValueId id, const Dims& dims, int most) const {
    const NodeId producer = graph_.value(id).producer;
    if (most == 0 || producer == no_node) return false;
    const Node& node = graph_.node(producer);
    const bool is_work = has_trait(node.op, OpTrait::pointwise) && node.outputs.size() == 1;
    // Ones ahead are in none of several operands that are repeated along all dims.
    const auto has_all_dims = [&](ValueId input) {
      const std::optional<Dims> own = input == no_value ? std::nullopt : dims_of_operand(input, id, dims);
      return own && own->size() == dims.size();
    };
    return is_work && is_worth_repeating(graph_, node) && std::ranges::any_of(node.inputs, has_all_dims) &&
           std::ranges::all_of(node.inputs, [&](ValueId input) {
             if (input == no_value) return true;
             const bool fits = !may_[input] && graph_.type(input).element_count() > 0 &&
                               dims_of_operand(input, id, dims).has_value();
             return fits &&
                    (is_stored(input, id) || (is_whole(input, id) && is_repeated(input, dims, most - 1)));
           });
  }

  /// The operand of `made` where that has `dims`.
  [[nodiscard]] ValueId reshaped(GraphRewriter& rewriter, ValueId id, ValueId made, const Dims& dims) const {
    if (id == no_value || may_[id]) return rewriter.mapped(id);
    const Dims own = dims_of_operand(id, made, dims).value();
    if (is_stored(id, made)) return add_reshape(rewriter.graph(), rewriter.mapped(id), own);
    const Node& node = graph_.node(graph_.value(id).producer);
    std::vector<ValueId> inputs;
    inputs.reserve(node.inputs.size());
    for (const ValueId input : node.inputs) inputs.push_back(reshaped(rewriter, input, id, own));
    return rewriter.graph().add(node.op, std::move(inputs), node.attributes, node.name);
  }

  static constexpr int most_repeated = 4;  ///< operations, each of the one before

  const Graph& graph_;
  IdMap<std::vector<NodeId>> uses_;
  IdMap<bool> is_output_;
  IdMap<bool> may_;   ///< per value: pointwise work that is raised, as far as is known
  IdMap<Dims> dims_;  ///< of these: the dims that it then has
};

Graph raise_once(const Graph& graph) {
  const Raiser raiser(graph);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return raiser.raise(rewriter, node); });
}

}  // namespace

Graph raise_reshapes(const Graph& graph) {
  constexpr int most_rounds =
      4;  // an operand of raised work may be work that is read through its reshape alone now
  Graph raised = raise_once(graph);
  for (int i = 1; i < most_rounds; ++i) {
    Graph again = raise_once(raised);
    if (same_structure(raised, again)) break;
    raised = std::move(again);
  }
  return raised;
}

}  // namespace sylvite
