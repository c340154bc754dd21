#include <algorithm>
#include <optional>
#include <set>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/broadcast_dims.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

/// The dims of `from` that hold what is folded where [..., `to`] is over `axes`; nothing where one holds folded and other dims.
std::optional<Dims> folded_dims(const Dims& from, const Dims& to, const Dims& axes) {
  Dims result;
  for (const DimGroup& group : dim_groups(from, to)) {
    bool folds = false, keeps = false;
    for (std::size_t d = group.to_begin; d < group.to_end; ++d) {
      const bool is_axis = std::ranges::find(axes, static_cast<std::int64_t>(d)) != axes.end();
      folds = folds || (is_axis && to[d] != 1);
      keeps = keeps || (!is_axis && to[d] != 1);
    }
    if (folds && keeps) return std::nullopt;
    for (std::size_t d = group.from_begin; folds && d < group.from_end; ++d)
      result.push_back(static_cast<std::int64_t>(d));
  }
  // Many elements of few results are divided by their outer dims, where the device wants that.
  constexpr std::int64_t least_columns = 512;
  const bool folds_rows = result.size() == 1 && result[0] == static_cast<std::int64_t>(from.size()) - 1;
  const bool has_columns = !result.empty() && result.back() + 1 < static_cast<std::int64_t>(from.size()) &&
                           from.back() >= least_columns;
  return folds_rows || has_columns ? std::optional(result) : std::nullopt;
}

class Flattener {
 public:
  Flattener(const Graph& graph, bool has_templates) : readers_(graph.uses()), has_templates_(has_templates) {}

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    if (node.outputs.size() != 1 || rewriter.source().type(node.outputs[0]).element_count() == 0)
      return false;
    const std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
    const std::size_t known = rewriter.graph().values().size();
    std::optional<ValueId> now;
    if (has_trait(node.op, OpTrait::matmul)) now = flat_matmul(rewriter.graph(), node, inputs);
    if (has_trait(node.op, OpTrait::view)) now = simple_view(rewriter.graph(), node, inputs[0]);
    if (has_trait(node.op, OpTrait::reduction)) now = flat_reduction(rewriter.graph(), node, inputs[0]);
    if (has_trait(node.op, OpTrait::pointwise)) now = flat_pointwise(rewriter.graph(), node, inputs);
    if (has_trait(node.op, OpTrait::normalization)) now = flat_normalization(rewriter.graph(), node, inputs);
    if (!now) {
      note_batched(node);
      return false;
    }
    if (static_cast<std::size_t>(*now) >= known)
      rewriter.graph().rename(*now, rewriter.source().value(node.outputs[0]).name);
    rewriter.set(node.outputs[0], *now);
    return true;
  }

 private:
  std::optional<ValueId> flat_matmul(Graph& graph, const Node& node, std::vector<ValueId> inputs) {
    const Dims a = graph.type(inputs[0]).dims();
    const bool has_weight = multiplies_bits(node.op) || graph.type(inputs[1]).rank() == 2;
    if (!has_weight || a.back() == 0) return std::nullopt;
    const Dims flat_a = {product(a, 0, a.size() - 1), a.back()};
    if (has_templates_ && is_read_as_slices(graph, node, inputs[0], flat_a)) return std::nullopt;
    inputs[0] = add_reshape(graph, inputs[0], flat_a);
    const ValueId flat = graph.add(node.op, inputs, node.attributes, node.name);
    flat_.insert(flat);
    Dims dims = a;
    dims.back() = graph.type(flat).dims()[1];
    return add_reshape(graph, flat, dims);
  }

  /// Is the left operand a slice, for this alone, whose rows do not lie together, as tokens behind the first of each image do?
  /// Templates read each batch where it lies, if it has rows for whole tiles.
  [[nodiscard]] bool is_read_as_slices(Graph& graph, const Node& node, ValueId x, const Dims& flat) const {
    constexpr std::int64_t least_rows = 64;
    const Dims dims = graph.type(x).dims();
    if (node.op != Op::matmul || dims.size() < 3 || dims[dims.size() - 2] < least_rows ||
        readers_[node.inputs[0]].size() != 1)
      return false;
    const Node* copy = producer_if(graph, add_reshape(graph, x, flat), Op::reshape);
    return copy != nullptr && producer_if(graph, copy->inputs[0], Op::slice) != nullptr;
  }

  /// The flat value that `id` is a reshape of, or no_value.
  [[nodiscard]] ValueId flat_source(const Graph& graph, ValueId id) const {
    const Node* reshape = producer_if(graph, id, Op::reshape);
    return reshape != nullptr && flat_.contains(reshape->inputs[0]) ? reshape->inputs[0] : no_value;
  }

  /// Products of several matrices, and work on them, for one reader.
  void note_batched(const Node& node) {
    const bool follows = has_trait(node.op, OpTrait::pointwise) &&
                         std::ranges::any_of(node.inputs, [&](ValueId id) { return batched_.contains(id); });
    if ((follows || node.op == Op::matmul) && readers_[node.outputs[0]].size() == 1)
      batched_.insert(node.outputs[0]);
  }

  /// Work on reshapes of values of the same extents, of which one is a product of several matrices, is done on these.
  std::optional<ValueId> ahead_of_reshapes(Graph& graph, const Node& node,
                                           const std::vector<ValueId>& inputs) {
    Dims from, to;
    std::vector<ValueId> sources;
    bool any = false;
    for (const ValueId input : inputs) {
      const Node* reshape = producer_if(graph, input, Op::reshape);
      const bool is_number = graph.type(input).element_count() == 1 && graph.is_constant(input);
      if (!is_number && reshape == nullptr) return std::nullopt;
      sources.push_back(is_number ? input : reshape->inputs[0]);
      if (is_number) continue;
      const Dims dims = graph.type(sources.back()).dims(), shown = graph.type(input).dims();
      if (dims.size() < 3 || (!from.empty() && (dims != from || shown != to))) return std::nullopt;
      from = dims;
      to = shown;
      any = any || worked_on_.contains(sources.back()) ||
            producer_if(graph, sources.back(), Op::matmul) != nullptr;
    }
    if (!any) return std::nullopt;
    const ValueId made = graph.add(node.op, sources, node.attributes, node.name);
    worked_on_.insert(made);
    return add_reshape(graph, made, to);
  }

  std::optional<ValueId> flat_pointwise(Graph& graph, const Node& node, const std::vector<ValueId>& inputs) {
    if (std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) { return flat_.contains(id); }))
      return keep_flat(graph, node, inputs);
    if (const std::optional<ValueId> ahead = ahead_of_reshapes(graph, node, inputs)) return ahead;
    const TensorType before = graph.type(inputs[0]);
    ValueId source = no_value;
    Dims to;
    for (ValueId input : inputs) {
      if (source != no_value || flat_source(graph, input) == no_value) continue;
      source = flat_source(graph, input);
      to = graph.type(input).dims();
    }
    if (source == no_value) return std::nullopt;
    // What only this reads of a product is finished with the product, as it is.
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (batched_.contains(node.inputs[i]) && graph.type(inputs[i]).dims() == to) return std::nullopt;
    const Dims from = graph.type(source).dims();
    std::vector<Dims> operand_dims;
    for (ValueId input : inputs) {
      const std::optional<Dims> dims = broadcast_dims(graph.type(input).dims(), from, to);
      if (!dims) return std::nullopt;
      operand_dims.push_back(*dims);
    }
    std::vector<ValueId> operands;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool whole = graph.type(inputs[i]).dims() == to;
      operands.push_back(add_reshape(graph, inputs[i], whole ? from : operand_dims[i]));
    }
    const ValueId flat = graph.add(node.op, operands, node.attributes, node.name);
    flat_.insert(flat);
    return add_reshape(graph, flat, to);
  }

  /// Pointwise work directly on a flat value is flat as well, so that what follows a reshape of it can be.
  std::optional<ValueId> keep_flat(Graph& graph, const Node& node, const std::vector<ValueId>& inputs) {
    const ValueId result = graph.add(node.op, inputs, node.attributes, node.name);
    const bool same_shape = std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) {
      return flat_.contains(id) && graph.type(id).shape == graph.type(result).shape;
    });
    if (same_shape) flat_.insert(result);
    return result;
  }

  std::optional<ValueId> flat_normalization(Graph& graph, const Node& node, std::vector<ValueId> inputs) {
    const ValueId source = flat_source(graph, inputs[0]);
    if (source == no_value || node.op == Op::batch_norm || node.attributes.has("groups")) return std::nullopt;
    const Dims to = graph.type(inputs[0]).dims();
    const Dims from = graph.type(source).dims();
    const bool last = node.attributes.integer("axis") == static_cast<std::int64_t>(to.size()) - 1;
    if (!last || from.back() != to.back()) return std::nullopt;
    inputs[0] = source;
    Attributes attributes = node.attributes;
    attributes.set("axis", static_cast<std::int64_t>(from.size()) - 1);
    const ValueId flat = graph.add(node.op, inputs, attributes, node.name);
    flat_.insert(flat);
    return add_reshape(graph, flat, to);
  }

  /// Of the flat value, and with keepdims=1 and a reshape, so that work on the result has the dims of what was reduced.
  std::optional<ValueId> flat_reduction(Graph& graph, const Node& node, ValueId input) {
    if (node.op == Op::arg_max || node.op == Op::arg_min) return std::nullopt;
    const bool keeps = node.attributes.integer("keepdims") == 1;
    const Dims dims = graph.type(input).dims();
    const Dims& axes = node.attributes.integers("axes");
    const ValueId source = flat_source(graph, input);
    const bool is_empty = graph.type(input).element_count() == 0;
    const std::optional<Dims> flat_axes =
        source == no_value || is_empty ? std::nullopt : folded_dims(graph.type(source).dims(), dims, axes);
    if (keeps && !flat_axes) return std::nullopt;
    Attributes attributes = node.attributes;
    attributes.set("keepdims", std::int64_t{1});
    if (flat_axes) attributes.set("axes", *flat_axes);
    const ValueId flat = graph.add(node.op, {flat_axes ? source : input}, attributes, node.name);
    flat_.insert(flat);
    Dims result;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const bool folds = std::ranges::find(axes, static_cast<std::int64_t>(d)) != axes.end();
      if (!folds || keeps) result.push_back(folds ? 1 : dims[d]);
    }
    return add_reshape(graph, flat, result);
  }

  static std::optional<ValueId> simple_view(Graph& graph, const Node& node, ValueId input) {
    if (node.op == Op::reshape) return add_reshape(graph, input, node.attributes.integers("shape"));
    if (node.op == Op::transpose) return add_transpose(graph, input, node.attributes.integers("perm"));
    if (node.op != Op::slice) return std::nullopt;
    return add_slice(graph, input, node.attributes.integers("starts"), node.attributes.integers("sizes"),
                     node.attributes.integers("steps"));
  }

  IdMap<std::vector<NodeId>> readers_;  ///< per value of the old graph
  bool has_templates_;
  std::set<ValueId> batched_;  ///< values of the old graph
  std::set<ValueId>
      worked_on_;  ///< of the new graph: work on products of several matrices, ahead of their reshapes
  std::set<ValueId>
      flat_;  ///< values of the new graph: results of flat matmuls and reductions, and of the work on them
};

}  // namespace

Graph flatten(const Graph& graph, const LoweringOptions& options) {
  Flattener flattener(graph, options.refuse_template != nullptr);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return flattener.rewrite(rewriter, node); });
}

}  // namespace sylvite
