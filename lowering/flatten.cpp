#include "lowering/flatten.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "frontend/rewrite.h"

namespace sylvite {
namespace {

/// Runs of dims of two shapes with equal products, leftmost first: [6,4] and [2,3,4] give {[6],[2,3]},
/// {[4],[4]}.
struct DimGroup {
  std::size_t from_begin = 0, from_end = 0;
  std::size_t to_begin = 0, to_end = 0;
};

std::int64_t product(const Dims& dims, std::size_t begin, std::size_t end) {
  return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(begin),
                         dims.begin() + static_cast<std::ptrdiff_t>(end), std::int64_t{1},
                         std::multiplies<>());
}

/// REQUIRES equal element counts, none zero.
std::vector<DimGroup> dim_groups(const Dims& from, const Dims& to) {
  std::vector<DimGroup> groups;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < from.size() || j < to.size()) {
    DimGroup group{i, i, j, j};
    if (i < from.size()) group.from_end = ++i;
    if (j < to.size()) group.to_end = ++j;
    while (true) {
      const std::int64_t left = product(from, group.from_begin, group.from_end);
      const std::int64_t right = product(to, group.to_begin, group.to_end);
      if (left == right) break;
      if (left < right) {
        group.from_end = ++i;
      } else {
        group.to_end = ++j;
      }
    }
    groups.push_back(group);
  }
  return groups;
}

/// The dims under which an operand that broadcasts to `to` broadcasts in the same way to `from`, if there are
/// any.
std::optional<Dims> broadcast_dims(Dims operand, const Dims& from, const Dims& to) {
  if (operand.size() > to.size()) return std::nullopt;
  operand.insert(operand.begin(), to.size() - operand.size(), 1);
  Dims result;
  for (const DimGroup& group : dim_groups(from, to)) {
    bool ones = true;
    bool whole = true;
    for (std::size_t d = group.to_begin; d < group.to_end; ++d) {
      ones = ones && operand[d] == 1;
      whole = whole && operand[d] == to[d];
    }
    if (!ones && !whole) return std::nullopt;
    for (std::size_t d = group.from_begin; d < group.from_end; ++d) result.push_back(whole ? from[d] : 1);
  }
  const auto first =
      std::find_if(result.begin(), result.end(), [](std::int64_t extent) { return extent != 1; });
  result.erase(result.begin(), first);
  return result;
}

class Flattener {
 public:
  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    if (node.outputs.size() != 1 || rewriter.source().type(node.outputs[0]).element_count() == 0)
      return false;
    const std::vector<ValueId> inputs = rewriter.mapped(node.inputs);
    const std::size_t known = rewriter.graph().values().size();
    std::optional<ValueId> now;
    if (node.op == Op::matmul) now = flat_matmul(rewriter.graph(), node, inputs);
    if (node.op == Op::reshape) now = simple_reshape(rewriter.graph(), node, inputs[0]);
    if (has_trait(node.op, OpTrait::pointwise)) now = flat_pointwise(rewriter.graph(), node, inputs);
    if (has_trait(node.op, OpTrait::normalization)) now = flat_normalization(rewriter.graph(), node, inputs);
    if (!now) return false;
    if (static_cast<std::size_t>(*now) >= known)
      rewriter.graph().rename(*now, rewriter.source().value(node.outputs[0]).name);
    rewriter.set(node.outputs[0], *now);
    return true;
  }

 private:
  /// A reshape of `id`, looking through reshapes; `id` itself when it has these dims.
  static ValueId reshaped(Graph& graph, ValueId id, const Dims& dims) {
    while (const Node* before = producer_if(graph, id, Op::reshape)) id = before->inputs[0];
    if (graph.type(id).dims() == dims) return id;
    if (graph.is_constant(id))
      return graph.add_constant(graph.value(id).constant->reshaped(dims), graph.value(id).name);
    return graph.add(Op::reshape, {id}, {{"shape", dims}});
  }

  std::optional<ValueId> flat_matmul(Graph& graph, const Node& node, const std::vector<ValueId>& inputs) {
    const Dims a = graph.type(inputs[0]).dims();
    if (graph.type(inputs[1]).rank() != 2) return std::nullopt;
    const Dims flat_a = {product(a, 0, a.size() - 1), a.back()};
    const ValueId flat =
        graph.add(Op::matmul, {reshaped(graph, inputs[0], flat_a), inputs[1]}, {}, node.name);
    flat_.insert(flat);
    Dims dims = a;
    dims.back() = graph.type(flat).dims()[1];
    return reshaped(graph, flat, dims);
  }

  /// The flat value that `id` is a reshape of, or no_value.
  [[nodiscard]] ValueId flat_source(const Graph& graph, ValueId id) const {
    const Node* reshape = producer_if(graph, id, Op::reshape);
    return reshape != nullptr && flat_.contains(reshape->inputs[0]) ? reshape->inputs[0] : no_value;
  }

  std::optional<ValueId> flat_pointwise(Graph& graph, const Node& node, const std::vector<ValueId>& inputs) {
    if (std::any_of(inputs.begin(), inputs.end(), [&](ValueId id) { return flat_.contains(id); }))
      return keep_flat(graph, node, inputs);
    const TensorType before = graph.type(inputs[0]);
    ValueId source = no_value;
    Dims to;
    for (ValueId input : inputs) {
      if (source != no_value || flat_source(graph, input) == no_value) continue;
      source = flat_source(graph, input);
      to = graph.type(input).dims();
    }
    if (source == no_value) return std::nullopt;
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
      operands.push_back(reshaped(graph, inputs[i], whole ? from : operand_dims[i]));
    }
    const ValueId flat = graph.add(node.op, operands, node.attributes, node.name);
    flat_.insert(flat);
    return reshaped(graph, flat, to);
  }

  /// Pointwise work directly on a flat value is flat as well, so that what follows a reshape of it can be.
  std::optional<ValueId> keep_flat(Graph& graph, const Node& node, const std::vector<ValueId>& inputs) {
    const ValueId result = graph.add(node.op, inputs, node.attributes, node.name);
    if (graph.type(result).rank() == 2) flat_.insert(result);
    return result;
  }

  std::optional<ValueId> flat_normalization(Graph& graph, const Node& node, std::vector<ValueId> inputs) {
    const ValueId source = flat_source(graph, inputs[0]);
    if (source == no_value || node.op == Op::batch_norm) return std::nullopt;
    const Dims to = graph.type(inputs[0]).dims();
    const Dims from = graph.type(source).dims();
    const bool last = node.attributes.integer("axis") == static_cast<std::int64_t>(to.size()) - 1;
    if (!last || from.back() != to.back()) return std::nullopt;
    inputs[0] = source;
    Attributes attributes = node.attributes;
    attributes.set("axis", static_cast<std::int64_t>(from.size()) - 1);
    const ValueId flat = graph.add(node.op, inputs, attributes, node.name);
    flat_.insert(flat);
    return reshaped(graph, flat, to);
  }

  static std::optional<ValueId> simple_reshape(Graph& graph, const Node& node, ValueId input) {
    const Dims& dims = node.attributes.integers("shape");
    const Node* slice = producer_if(graph, input, Op::slice);
    if (slice == nullptr) return reshaped(graph, input, dims);
    const Node sliced = *slice;
    return slice_after_reshape(graph, sliced, dims);
  }

  /// reshape(slice(x)) as slice(reshape(x)), when one axis is sliced in whole multiples of what it is split
  /// into.
  static std::optional<ValueId> slice_after_reshape(Graph& graph, const Node& slice, const Dims& to) {
    const Dims whole = graph.type(slice.inputs[0]).dims();
    const Dims from = graph.type(slice.outputs[0]).dims();
    const Dims& starts = slice.attributes.integers("starts");
    const Dims& steps = slice.attributes.integers("steps");
    Dims whole_to;
    Dims new_starts;
    for (const DimGroup& group : dim_groups(from, to)) {
      const std::size_t d = group.from_begin;
      const bool cut =
          product(from, group.from_begin, group.from_end) != product(whole, group.from_begin, group.from_end);
      const bool reversed = std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(group.from_begin),
                                        steps.begin() + static_cast<std::ptrdiff_t>(group.from_end),
                                        [](std::int64_t step) { return step != 1; });
      if (reversed) return std::nullopt;
      whole_to.insert(whole_to.end(), to.begin() + static_cast<std::ptrdiff_t>(group.to_begin),
                      to.begin() + static_cast<std::ptrdiff_t>(group.to_end));
      new_starts.resize(whole_to.size(), 0);
      if (!cut) continue;
      if (group.from_end != d + 1 || group.to_begin == group.to_end) return std::nullopt;
      const std::int64_t inner = product(to, group.to_begin + 1, group.to_end);
      if (starts[d] % inner != 0 || whole[d] % inner != 0) return std::nullopt;
      whole_to[group.to_begin] = whole[d] / inner;
      new_starts[group.to_begin] = starts[d] / inner;
    }
    const ValueId x = reshaped(graph, slice.inputs[0], whole_to);
    return graph.add(Op::slice, {x}, {{"starts", new_starts}, {"sizes", to}, {"steps", Dims(to.size(), 1)}},
                     slice.name);
  }

  std::set<ValueId> flat_;  ///< values of the new graph: results of flat matmuls and of the work on them
};

}  // namespace

Graph flatten(const Graph& graph) {
  Flattener flattener;
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return flattener.rewrite(rewriter, node); });
}

}  // namespace sylvite
