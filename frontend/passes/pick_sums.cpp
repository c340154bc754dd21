// A sum along an axis that has one element, or none, which is not zero, is that element:
//   reduce_sum(where(equal(i[n,1], {0,1,..,m-1}), x[n,1], 0), {1})  ->  where(0 <= i and i < m, x, 0)
// The gradients of losses and of embeddings by one-hot vectors come as such sums.

#include <optional>
#include <utility>
#include <vector>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"

namespace sylvite {
namespace {

/// The elements of a constant of integers where each is one more than the one before.
struct Range {
  std::int64_t first = 0, last = 0;
};
std::optional<Range> range_of(const Graph& graph, ValueId id) {
  if (!graph.is_constant(id)) return std::nullopt;
  const Tensor& constant = *graph.value(id).constant;
  const bool is_index = constant.dtype() == DType::i32 || constant.dtype() == DType::i64;
  if (!is_index || constant.size() == 0) return std::nullopt;
  const std::vector<std::int64_t> values = constant.to_int64s();
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] != values[0] + static_cast<std::int64_t>(i)) return std::nullopt;
  return Range{values.front(), values.back()};
}

/// What says where the element is: the index is one of the range. All other conditions hold for the whole row.
struct Pick {
  ValueId index = no_value;
  Range range;
  std::vector<ValueId> conditions;
};

class Picker {
 public:
  /// `dims`: of what is summed, along `axis`.
  Picker(const Graph& graph, Dims dims, std::size_t axis)
      : graph_(graph), dims_(std::move(dims)), axis_(axis) {}

  /// Is it the same all along the axis?
  [[nodiscard]] bool is_same(ValueId id) const {
    const Dims dims = graph_.type(id).dims();
    const std::size_t missing = dims_.size() - dims.size();
    return axis_ < missing || dims[axis_ - missing] == 1;
  }

  /// False where the condition tells no single place.
  bool read(ValueId condition, Pick& pick) const {
    if (is_same(condition)) {
      pick.conditions.push_back(condition);
      return true;
    }
    if (const Node* both = producer_if(graph_, condition, Op::logical_and))
      return read(both->inputs[0], pick) && read(both->inputs[1], pick);
    const Node* equal = producer_if(graph_, condition, Op::equal);
    return equal != nullptr && pick.index == no_value &&
           either_order(*equal, [&](ValueId index, ValueId places) { return take(index, places, pick); });
  }

 private:
  bool take(ValueId index, ValueId places, Pick& pick) const {
    const bool lies_along = !is_same(places) && graph_.type(places).element_count() == dims_[axis_];
    if (!lies_along || !is_same(index)) return false;
    const std::optional<Range> range = range_of(graph_, places);
    if (!range) return false;
    pick.index = index;
    pick.range = *range;
    return true;
  }

  const Graph& graph_;
  Dims dims_;
  std::size_t axis_;
};

bool pick_sum(GraphRewriter& rewriter, const Node& node) {
  if (node.op != Op::reduce_sum || node.attributes.integers("axes").size() != 1) return false;
  const Graph& source = rewriter.source();
  const Node* chosen = producer_if(source, node.inputs[0], Op::where);
  if (chosen == nullptr || !is_scalar(source, chosen->inputs[2], 0.0)) return false;
  const Dims dims = source.type(node.inputs[0]).dims();
  const Picker picker(source, dims, static_cast<std::size_t>(node.attributes.integers("axes")[0]));
  Pick pick;
  if (!picker.is_same(chosen->inputs[1]) || !picker.read(chosen->inputs[0], pick) || pick.index == no_value)
    return false;
  Graph& graph = rewriter.graph();
  const DType dtype = source.type(pick.index).dtype;
  const ValueId index = rewriter.mapped(pick.index);
  const auto bound = [&](Op op, std::int64_t value) {
    Tensor number(dtype, {});
    number.set_int64(0, value);
    return graph.add(op, {index, graph.add_constant(number)});
  };
  ValueId condition = graph.add(
      Op::logical_and, {bound(Op::greater_equal, pick.range.first), bound(Op::less_equal, pick.range.last)});
  for (const ValueId other : pick.conditions)
    condition = graph.add(Op::logical_and, {rewriter.mapped(other), condition});
  const ValueId picked = graph.add(
      Op::where, {condition, rewriter.mapped(chosen->inputs[1]), rewriter.mapped(chosen->inputs[2])});
  rewriter.replace(node, Op::reshape, {picked}, {{"shape", source.type(node.outputs[0]).dims()}});
  return true;
}

}  // namespace

Graph pick_sums(const Graph& graph) {
  return rewrite_nodes(graph, pick_sum);
}

}  // namespace sylvite
