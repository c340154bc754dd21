#include "lowering/plan/joins.h"

#include <algorithm>
#include <optional>
#include <set>

#include "frontend/graph/rewrite.h"
#include "lowering/plan/fusion.h"
#include "lowering/plan/fusion_rules.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/storage_order.h"

namespace sylvite {
namespace {

class Joiner {
 public:
  explicit Joiner(const Graph& graph) : graph_(graph), outputs_(graph.outputs.begin(), graph.outputs.end()) {
    joins_ = no_joins(graph);
    std::vector<NodeId> concats;
    for (std::size_t i = 0; i < graph.nodes().size(); ++i)
      if (graph.nodes()[i].op == Op::concat && is_contiguous(graph.nodes()[i]))
        concats.push_back(static_cast<NodeId>(i));
    // The longest first: shorter ones may then turn out to be the beginning of a longer one.
    std::stable_sort(concats.begin(), concats.end(), [&](NodeId a, NodeId b) {
      return parts_of(graph.node(a)).size() > parts_of(graph.node(b)).size();
    });
    for (NodeId id : concats) join(id);
  }

  [[nodiscard]] Joins take() { return std::move(joins_); }

 private:
  /// Every dim outside the axis, as stored, is 1, and parts are stored as the whole is.
  [[nodiscard]] bool is_contiguous(const Node& concat) const {
    const bool alike = std::all_of(concat.inputs.begin(), concat.inputs.end(), [&](ValueId part) {
      return graph_.type(part).layout == graph_.type(concat.outputs[0]).layout;
    });
    if (!alike) return false;
    const TensorType& whole = graph_.type(concat.outputs[0]);
    const std::int64_t axis = concat.attributes.integer("axis");
    if (has_outer_blocks(whole)) return axis == 1;
    const Dims stored = whole.storage_dims();
    return std::all_of(stored.begin(), stored.begin() + axis,
                       [](std::int64_t extent) { return extent == 1; });
  }

  /// Those of a concat along the same axis stand for it.
  [[nodiscard]] std::vector<ValueId> parts_of(const Node& concat) const {
    std::vector<ValueId> parts;
    for (const ValueId part : concat.inputs) {
      const Node* inner = producer_if(graph_, part, Op::concat);
      if (inner == nullptr || inner->attributes.integer("axis") != concat.attributes.integer("axis")) {
        parts.push_back(part);
      } else {
        const std::vector<ValueId> further = parts_of(*inner);
        parts.insert(parts.end(), further.begin(), further.end());
      }
    }
    return parts;
  }

  /// A value that a kernel writes for its own sake: not a view, which its reader computes as it reads, unless it turns
  /// blocks and planes into each other: concats do not.
  [[nodiscard]] bool is_computed(ValueId id) const {
    const NodeId producer = graph_.value(id).producer;
    if (producer == no_node || outputs_.contains(id)) return false;
    const Op op = graph_.node(producer).op;  // a loop's results are places in a larger buffer
    if (op == Op::to_layout) return !is_free(graph_, graph_.node(producer));
    return role_of(graph_.node(producer)) != Role::view && op != Op::concat && op != Op::loop;
  }

  void join(NodeId id) {
    const Node& concat = graph_.node(id);
    const ValueId whole = concat.outputs[0];
    if (outputs_.contains(whole)) return;
    const std::optional<Part> beginning = as_beginning(concat);
    if (beginning) {
      joins_.parts[whole] = *beginning;
      joins_.is_joined[id] = true;
      return;
    }
    std::map<ValueId, Part> parts;
    std::int64_t offset = 0;
    for (ValueId part : parts_of(concat)) {
      const bool free = is_computed(part) && !joins_.parts.contains(part) && !parts.contains(part);
      if (!free || offset % arena_alignment != 0) return;
      parts[part] = {whole, offset};
      offset += graph_.type(part).byte_size();
    }
    if (offset != graph_.type(whole).byte_size()) return;
    joins_.parts.merge(parts);
    joins_.is_joined[id] = true;
  }

  /// The place of a concat whose parts lie side by side in another one already.
  [[nodiscard]] std::optional<Part> as_beginning(const Node& concat) const {
    std::optional<Part> first;
    std::int64_t offset = 0;
    for (ValueId part : parts_of(concat)) {
      const auto found = joins_.parts.find(part);
      if (found == joins_.parts.end()) return std::nullopt;
      if (!first) first = found->second;
      if (found->second.whole != first->whole || found->second.offset != first->offset + offset)
        return std::nullopt;
      offset += graph_.type(part).byte_size();
    }
    return offset == graph_.type(concat.outputs[0]).byte_size() ? first : std::nullopt;
  }

  const Graph& graph_;
  std::set<ValueId> outputs_;
  Joins joins_;
};

}  // namespace

Joins no_joins(const Graph& graph) {
  Joins joins;
  joins.is_joined = IdMap<bool>(graph.nodes().size(), false);
  return joins;
}

Joins find_joins(const Graph& graph) {
  return Joiner(graph).take();
}

}  // namespace sylvite
