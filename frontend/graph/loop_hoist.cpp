#include "frontend/graph/loop_hoist.h"

#include <algorithm>
#include <optional>

#include "frontend/ops/op_table.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_hoisted_elements = std::int64_t{1} << 24;  ///< of all trips of one value

class Hoist {
 public:
  Hoist(GraphBuilder& builder, const LoopSpec& spec, const TripValues& places)
      : builder_(builder), trips_(spec.trips), depends_(builder.graph().values().size(), false) {
    for (const Sym& state : places.states) depends_[state.id()] = true;
    for (std::size_t i = 0; i < places.slices.size(); ++i) {
      depends_[places.slices[i].id()] = true;
      of_all_.emplace(places.slices[i].id(), AllTrips{spec.given.slices[i], false});
    }
  }

  void visit(const Node& node) {
    const auto depends = [&](ValueId id) { return id != no_value && depends_[id]; };
    if (std::ranges::none_of(node.inputs, depends)) return;
    for (const ValueId output : node.outputs) depends_[output] = true;
    const auto is_made = [&](ValueId id) { return !depends(id) || of_all_.contains(id); };
    if (node.outputs.size() != 1 || !std::ranges::all_of(node.inputs, is_made)) return;
    const TensorType& type = builder_.graph().type(node.outputs[0]);
    if (!type.is_known() || type.element_count() > most_hoisted_elements / trips_) return;
    const bool is_product = node.op == Op::matmul || node.op == Op::gather;
    const bool follows = std::ranges::any_of(node.inputs, [&](ValueId id) {
      const auto found = of_all_.find(id);
      return found != of_all_.end() && found->second.is_worth_it;
    });
    if (const std::optional<Sym> all = over_trips(node, type.dims()))
      of_all_.emplace(node.outputs[0], AllTrips{*all, is_product || follows});
  }

  [[nodiscard]] std::unordered_map<ValueId, Sym> worth_it() const {
    std::unordered_map<ValueId, Sym> values;
    for (const auto& [id, all] : of_all_)
      if (all.is_worth_it) values.emplace(id, all.value);
    return values;
  }

 private:
  struct AllTrips {
    Sym value;  ///< [trips, ...]
    bool is_worth_it;
  };

  [[nodiscard]] const Sym* find(ValueId id) const {
    const auto found = of_all_.find(id);
    return found == of_all_.end() ? nullptr : &found->second.value;
  }

  /// What a broadcast operand is for all trips, of which a trip has results of `rank`.
  [[nodiscard]] Sym operand(ValueId id, std::size_t rank) const {
    const Sym* all = find(id);
    if (all == nullptr) return {builder_, id};
    Dims dims = all->dims();
    dims.insert(dims.begin() + 1, rank + 1 - dims.size(), 1);
    return reshape(*all, dims);
  }

  /// The node's result for all trips; nothing for operations without a rule.
  [[nodiscard]] std::optional<Sym> over_trips(const Node& node, Dims dims) const {
    if (node.op == Op::matmul || has_trait(node.op, OpTrait::pointwise)) {
      std::vector<Sym> operands;
      operands.reserve(node.inputs.size());
      for (const ValueId input : node.inputs)
        operands.push_back(input == no_value ? Sym() : operand(input, dims.size()));
      return builder_.add(node.op, operands, node.attributes);
    }
    const Sym* first = find(node.inputs[0]);
    if (node.op == Op::gather) {
      const Sym* indices = find(node.inputs[1]);
      if (first != nullptr || indices == nullptr) return std::nullopt;
      const auto axis = static_cast<int>(node.attributes.integer("axis"));
      const Sym items = gather({builder_, node.inputs[0]}, *indices, axis);
      std::vector<std::int64_t> perm = all_axes(items.rank());
      std::rotate(perm.begin(), perm.begin() + axis, perm.begin() + axis + 1);
      return transpose(items, perm);
    }
    if (node.op == Op::reshape) {
      dims.insert(dims.begin(), trips_);
      return reshape(*first, dims);
    }
    if (node.op == Op::transpose) {
      std::vector<std::int64_t> perm = {0};
      for (const std::int64_t axis : node.attributes.integers("perm")) perm.push_back(axis + 1);
      return transpose(*first, perm);
    }
    return std::nullopt;
  }

  GraphBuilder& builder_;
  std::int64_t trips_;
  IdMap<bool> depends_;  ///< per value of a trip: on what it is given
  std::unordered_map<ValueId, AllTrips> of_all_;
};

}  // namespace

std::unordered_map<ValueId, Sym> hoist_products(GraphBuilder& builder, const LoopSpec& spec,
                                                const TripValues& places, NodeId first) {
  Hoist hoist(builder, spec, places);
  const auto end = static_cast<NodeId>(builder.graph().nodes().size());
  for (NodeId id = first; id < end; ++id) hoist.visit(Node(builder.graph().node(id)));
  return hoist.worth_it();
}

}  // namespace sylvite
