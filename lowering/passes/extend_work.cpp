// Before: y = concat(x[:p], x[p:] * c + turned(x[p:]) * s)
// After:  y = where(i < p, x, x * c' + turned(x) * s')      c' and s' with zeros for the first p
// What is cut, worked on and put together again goes through memory three times; work on all of x reads it where it lies.

#include "lowering/passes/extend_work.h"

#include <algorithm>
#include <map>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_rest =
    4;  ///< one place of so many is left as it is, at most: the work on it is for nothing

/// Places of a value along one dim, counted from its last: broadcasts add dims in front.
struct Range {
  std::size_t from_end = 0;
  std::int64_t start = 0, size = 0, whole = 0;
};

std::size_t axis_of(const Range& range, const TensorType& type) {
  return type.shape.size() - range.from_end;
}

/// The extent along the range's dim; 1 where a broadcast adds it.
std::int64_t range_extent(const Range& range, const Dims& dims) {
  return dims.size() < range.from_end ? 1 : dims[dims.size() - range.from_end];
}

/// Zeros for the places outside the range.
Tensor among_zeros(const Tensor& part, const Range& range) {
  Dims dims = part.dims();
  const std::size_t axis = dims.size() - range.from_end;
  dims[axis] = range.whole;
  Tensor result(part.dtype(), dims);
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const std::int64_t place = i / inner % range.whole - range.start, outer = i / inner / range.whole;
    const bool is_inside = place >= 0 && place < range.size;
    result.set_double(i, is_inside ? part.as_double((outer * range.size + place) * inner + i % inner) : 0);
  }
  return result;
}

/// Truth for the places before and behind the range.
Tensor is_outside(const Range& range) {
  Dims dims(range.from_end, 1);
  dims[0] = range.whole;
  Tensor result(DType::boolean, dims);
  for (std::int64_t i = 0; i < range.whole; ++i)
    result.set_double(i, i < range.start || i >= range.start + range.size ? 1 : 0);
  return result;
}

class Extender {
 public:
  explicit Extender(const Graph& graph) : graph_(graph), readers_(graph.uses()) {}

  bool rewrite(GraphRewriter& rewriter, const Node& node) {
    if (node.op != Op::concat) return false;
    const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
    const Dims dims = graph_.type(node.outputs[0]).dims();
    std::optional<ValueId> whole;
    std::optional<std::size_t> worked;
    Range range{dims.size() - axis, 0, 0, dims[axis]};
    std::int64_t start = 0;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const std::int64_t size = graph_.type(node.inputs[i]).dims()[axis];
      const std::optional<ValueId> source = cut(node.inputs[i], {range.from_end, start, size, dims[axis]});
      if (source && (!whole || *whole == *source)) {
        whole = source;
      } else if (worked) {
        return false;
      } else {
        worked = i;
        range.start = start;
        range.size = size;
      }
      start += size;
    }
    if (!whole || !worked || (range.whole - range.size) * most_rest > range.whole) return false;
    if (readers_[node.inputs[*worked]].size() != 1 || graph_.type(*whole).dims() != dims) return false;
    std::map<ValueId, ValueId> known = {};
    steps_ = 0;
    const std::optional<ValueId> all = extend(rewriter, node.inputs[*worked], *whole, range, known);
    if (!all || rewriter.graph().type(*all).dims() != dims) return false;
    const ValueId outside = rewriter.graph().add_constant(is_outside(range));
    rewriter.replace(node, Op::where, {outside, rewriter.mapped(*whole), *all});
    return true;
  }

 private:
  /// What `id` is the range of, cut along no other dim.
  [[nodiscard]] std::optional<ValueId> cut(ValueId id, const Range& range) const {
    const Node* slice = producer_if(graph_, id, Op::slice);
    if (slice == nullptr) return std::nullopt;
    const Dims from = graph_.type(slice->inputs[0]).dims(), to = graph_.type(id).dims();
    const Dims &starts = slice->attributes.integers("starts"), &steps = slice->attributes.integers("steps");
    const std::size_t axis = axis_of(range, graph_.type(id));
    for (std::size_t i = 0; i < from.size(); ++i) {
      const bool is_whole = from[i] == to[i] && starts[i] == 0;
      const bool is_range =
          i == axis && from[i] == range.whole && to[i] == range.size && starts[i] == range.start;
      if (steps[i] != 1 || (i == axis ? !is_range : !is_whole)) return std::nullopt;
    }
    return slice->inputs[0];
  }

  /// Does the node treat every place along the range's dim by itself?
  [[nodiscard]] bool works_by_places(const Node& node, const Range& range) const {
    if (node.outputs.size() != 1 || ++steps_ > most_nodes) return false;
    const TensorType& type = graph_.type(node.outputs[0]);
    if (has_trait(node.op, OpTrait::pointwise)) return true;
    if (node.op == Op::slice) {
      const std::size_t axis = axis_of(range, type);
      return graph_.type(node.inputs[0]).dims()[axis] == range.size &&
             node.attributes.integers("steps")[axis] == 1 && type.dims()[axis] == range.size;
    }
    const bool picks = node.op == Op::gather && graph_.is_constant(node.inputs[1]) &&
                       graph_.type(node.inputs[1]).rank() == 1;
    return (picks || node.op == Op::concat) &&
           static_cast<std::size_t>(node.attributes.integer("axis")) != axis_of(range, type);
  }

  /// The value of which `id` is the range, made of `whole`.
  std::optional<ValueId> extend(GraphRewriter& rewriter, ValueId id, ValueId whole, const Range& range,
                                std::map<ValueId, ValueId>& known) const {
    if (const auto found = known.find(id); found != known.end()) return found->second;
    const std::optional<ValueId> now = extend_new(rewriter, id, whole, range, known);
    if (now) known[id] = *now;
    return now;
  }

  std::optional<ValueId> extend_new(GraphRewriter& rewriter, ValueId id, ValueId whole, const Range& range,
                                    std::map<ValueId, ValueId>& known) const {
    if (cut(id, range) == whole) return rewriter.mapped(whole);
    const Dims dims = graph_.type(id).dims();
    if (range_extent(range, dims) == 1) return rewriter.mapped(id);
    if (range_extent(range, dims) != range.size) return std::nullopt;
    if (graph_.is_constant(id)) {
      const Value& value = graph_.value(id);
      return rewriter.graph().add_constant(among_zeros(*value.constant, range), value.name + "_extended");
    }
    if (graph_.value(id).producer == no_node) return std::nullopt;
    const Node& node = graph_.node(graph_.value(id).producer);
    if (!works_by_places(node, range)) return std::nullopt;
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_index = node.op == Op::gather && i == 1;
      const std::optional<ValueId> input =
          is_index ? rewriter.mapped(node.inputs[i]) : extend(rewriter, node.inputs[i], whole, range, known);
      if (!input) return std::nullopt;
      inputs.push_back(*input);
    }
    Attributes attributes = node.attributes;
    if (node.op == Op::slice) {
      Dims sizes = dims;
      sizes[axis_of(range, graph_.type(id))] = range.whole;
      attributes.set("sizes", sizes);
    }
    return rewriter.graph().add(node.op, inputs, attributes, node.name);
  }

  static constexpr int most_nodes = 24;

  const Graph& graph_;
  IdMap<std::vector<NodeId>> readers_;  ///< per value
  mutable int steps_ = 0;               ///< nodes of the work that was looked at
};

}  // namespace

Graph extend_work(const Graph& graph) {
  Extender extender(graph);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return extender.rewrite(rewriter, node); });
}

}  // namespace sylvite
