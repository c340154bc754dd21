// Before: y = concat(slice(x), slice(x))     what lies from k on, then what lies ahead of it: a roll along one dim
// After:  y = gather(x, [k, k + 1, ..., 0, ..., k - 1])
// A concat is a kernel of its own; what is looked up is read by the work behind it. Little values alone: of large ones a concat
// moves whole vectors.

#include <algorithm>
#include <optional>

#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_bytes = 4 << 20;  // more takes longer than a launch

/// Where the second part of x begins, if the parts are all of x, in the other order.
std::optional<std::int64_t> turn_of(const Graph& graph, const Node& first, const Node& second,
                                    std::size_t axis) {
  const ValueId x = first.inputs[0];
  if (second.inputs[0] != x) return std::nullopt;
  const Dims whole = graph.type(x).dims();
  const std::int64_t ahead = second.attributes.integers("sizes")[axis];
  for (const Node* part : {&first, &second}) {
    const Dims &starts = part->attributes.integers("starts"), &steps = part->attributes.integers("steps");
    Dims sizes = part->attributes.integers("sizes");
    if (starts[axis] != (part == &first ? ahead : 0)) return std::nullopt;
    if (sizes[axis] != (part == &first ? whole[axis] - ahead : ahead)) return std::nullopt;
    sizes[axis] = whole[axis];
    const bool is_forward = std::ranges::all_of(steps, [](std::int64_t step) { return step == 1; });
    if (sizes != whole || !is_forward) return std::nullopt;
  }
  return ahead;
}

class RollGatherer {
 public:
  explicit RollGatherer(const Graph& graph) : graph_(graph), readers_(graph.uses()) {}

  bool rewrite(GraphRewriter& rewriter, const Node& node) const {
    if (node.op != Op::concat || node.inputs.size() != 2 || !is_read_by_work(node.outputs[0])) return false;
    const Node *first = producer_if(graph_, node.inputs[0], Op::slice),
               *second = producer_if(graph_, node.inputs[1], Op::slice);
    const auto axis = static_cast<std::size_t>(node.attributes.integer("axis"));
    if (first == nullptr || second == nullptr) return false;
    const std::optional<std::int64_t> turn = turn_of(graph_, *first, *second, axis);
    if (!turn) return false;
    const std::int64_t extent = graph_.type(node.outputs[0]).dims()[axis];
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < extent; ++i) places.push_back((i + *turn) % extent);
    const ValueId table = rewriter.graph().add_constant(Tensor::of(DType::i64, {extent}, places));
    rewriter.replace(node, Op::gather, {rewriter.mapped(first->inputs[0]), table},
                     {{"axis", static_cast<std::int64_t>(axis)}});
    return true;
  }

 private:
  [[nodiscard]] bool is_read_by_work(ValueId id) const {
    const TensorType& type = graph_.type(id);
    return type.element_count() > 0 && type.byte_size() <= most_bytes && !readers_[id].empty() &&
           std::ranges::find(graph_.outputs, id) == graph_.outputs.end() &&
           std::ranges::all_of(readers_[id], [&](NodeId reader) {
             return has_trait(graph_.node(reader).op, OpTrait::pointwise);
           });
  }

  const Graph& graph_;
  IdMap<std::vector<NodeId>> readers_;  ///< per value
};

}  // namespace

Graph gather_rolls(const Graph& graph) {
  const RollGatherer gatherer(graph);
  return rewrite_nodes(
      graph, [&](GraphRewriter& rewriter, const Node& node) { return gatherer.rewrite(rewriter, node); });
}

}  // namespace sylvite
