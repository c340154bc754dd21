// Each group of work on elements takes later ones, nearest first, as long as they fit. Between the two, what depends on the first
// moves behind the joined group, and what does not stays ahead of it.

#include "lowering/plan/join_elements.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "frontend/ops/op_table.h"
#include "lowering/plan/fusion_rules.h"
#include "lowering/plan/group_body.h"
#include "lowering/plan/group_reads.h"

namespace sylvite {
namespace {

constexpr std::size_t furthest = 16;  ///< groups between two whose results take memory for a while
/// A result that takes a device less time than a launch.
constexpr std::int64_t short_launch_bytes = 1 << 18;

/// How much one kernel may have: registers and the time to compile grow with each.
struct Most {
  std::size_t nodes, inputs, outputs;
};
constexpr Most most_on_cpu = {96, 24, 8}, most_on_device = {128, 32, 16};

/// Fewer take a CPU as long as the call; and equal kernels of them are compiled once, as long as they are not joined with others.
constexpr std::int64_t least_elements_on_cpu = 16;

using GroupId = std::size_t;

/// What one group reads and writes.
struct Elements {
  bool fits = false;  ///< it is nothing but work on elements, with results that lie alike
  TensorType type;    ///< of its results, but for the dtype
  std::set<ValueId> reads;
  std::set<GroupId> writers;  ///< groups that write what it reads
};

bool lie_alike(const TensorType& a, const TensorType& b) {
  return a.dims() == b.dims() && a.layout == b.layout;
}

/// Does it compute an element, or read one from where its neighbours are, too?
bool is_on_elements(const Node& node, bool on_device) {
  constexpr std::array views = {Op::broadcast_to, Op::slice, Op::reshape, Op::iota, Op::extents};
  if (on_device && node.op == Op::transpose) {  // of whole rows
    const Dims& perm = node.attributes.integers("perm");
    return perm.back() + 1 == static_cast<std::int64_t>(perm.size());
  }
  return has_trait(node.op, OpTrait::pointwise) || std::ranges::find(views, node.op) != views.end();
}

using InputsOfValues = std::map<ValueId, std::set<ValueId>>;

class ElementJoiner {
 public:
  ElementJoiner(const Graph& graph, std::vector<Group> groups, const LoweringOptions& options)
      : graph_(graph),
        on_device_(options.refuse_template != nullptr),
        most_(on_device_ ? most_on_device : most_on_cpu),
        groups_(std::move(groups)),
        place_(groups_.size()) {
    outputs_.insert(graph.outputs.begin(), graph.outputs.end());
    inputs_.insert(graph.inputs.begin(), graph.inputs.end());
    for (const State& pair : graph.overwrites)
      overwritten_[graph.outputs[pair.output]] = graph.inputs[pair.input];
    for (const State& state : graph.states) states_[graph.outputs[state.output]] = graph.inputs[state.input];
    for (GroupId id = 0; id < groups_.size(); ++id) {
      order_.push_back(id);
      place_[id] = id;
      elements_.push_back(elements_of(groups_[id]));
      for (const ValueId output : groups_[id].outputs) writers_[output] = id;
      for (const ValueId value : elements_[id].reads) readers_[value].insert(id);
    }
    for (Elements& each : elements_)
      for (const ValueId value : each.reads) add_writers(graph, writers_, value, each.writers);
    note_viewed();
  }

  std::vector<Group> run() {
    for (std::size_t at = 0; at < order_.size(); ++at)
      while (take_next(order_[at])) continue;
    std::vector<Group> result;
    for (const GroupId id : order_) {
      if (groups_[id].nodes.empty()) continue;
      if (elements_[id].fits && groups_[id].outputs.size() > 1) {
        InputsOfValues reads = inputs_of(groups_[id].nodes);
        order_results(groups_[id].outputs, reads);
      }
      result.push_back(std::move(groups_[id]));
    }
    return result;
  }

 private:
  [[nodiscard]] const TensorType& type_of(const Group& group) const { return graph_.type(group.outputs[0]); }

  /// By value that these nodes make: the graph's inputs from which it is computed.
  [[nodiscard]] InputsOfValues inputs_of(const std::vector<NodeId>& nodes) const {
    InputsOfValues reads;
    for (const NodeId id : nodes) {
      const Node& node = graph_.node(id);
      std::set<ValueId> all;
      for (const ValueId input : node.inputs) {
        const auto found = reads.find(input);
        if (found != reads.end())
          all.insert(found->second.begin(), found->second.end());
        else if (inputs_.contains(input))
          all.insert(input);
      }
      for (const ValueId output : node.outputs) reads[output] = all;
    }
    return reads;
  }

  /// Those that are computed from most inputs are stored first: others may then be written over inputs that these need, as
  /// moments are in a step of training (runtime/overwrite.h).
  static void order_results(std::vector<ValueId>& outputs, InputsOfValues& reads) {
    std::ranges::stable_sort(outputs, std::ranges::greater{}, [&](ValueId id) { return reads[id].size(); });
  }

  /// Is what is written over an input stored once no other result is computed from that?
  [[nodiscard]] bool keeps_overwrites(const std::vector<NodeId>& nodes, std::vector<ValueId> outputs) const {
    if (overwritten_.empty()) return true;
    InputsOfValues reads = inputs_of(nodes);
    order_results(outputs, reads);
    for (auto output = outputs.begin(); output != outputs.end(); ++output) {
      const auto found = overwritten_.find(*output);
      const auto reads_it = [&](ValueId later) { return reads[later].contains(found->second); };
      if (found != overwritten_.end() && std::any_of(output + 1, outputs.end(), reads_it)) return false;
    }
    return true;
  }

  void note_viewed() {
    std::set<NodeId> grouped;
    for (const Group& group : groups_) grouped.insert(group.nodes.begin(), group.nodes.end());
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id)
      if (!grouped.contains(id)) viewed_.insert(graph_.node(id).inputs.begin(), graph_.node(id).inputs.end());
  }

  [[nodiscard]] Elements elements_of(const Group& group) const {
    Elements result;
    result.reads = values_read(graph_, group);
    result.fits = std::ranges::all_of(group.nodes,
                                      [&](NodeId id) { return is_on_elements(graph_.node(id), on_device_); });
    result.type = type_of(group);
    if (!on_device_ && result.type.element_count() < least_elements_on_cpu) result.fits = false;
    return result;
  }

  /// Joins the group with the nearest later one that fits; false where none does.
  bool take_next(GroupId id) {
    if (!elements_[id].fits || groups_[id].nodes.empty()) return false;
    for (const GroupId other : later_candidates(id)) {
      if (!pays(id, other) || !fit(id, other)) continue;
      if (const std::optional<std::vector<GroupId>> behind = moved_behind(id, other)) {
        join(id, other, *behind);
        return true;
      }
    }
    return false;
  }

  /// Groups behind this one that read what it reads or makes, and its neighbours, in order.
  [[nodiscard]] std::vector<GroupId> later_candidates(GroupId id) const {
    std::set<std::size_t> places;
    const auto add = [&](GroupId other) {
      if (place_[other] > place_[id] && elements_[other].fits && !groups_[other].nodes.empty() &&
          lie_alike(elements_[other].type, elements_[id].type))
        places.insert(place_[other]);
    };
    for (const ValueId value : elements_[id].reads)
      for (const GroupId other : readers_.at(value)) add(other);
    for (const ValueId value : groups_[id].outputs)
      if (const auto found = readers_.find(value); found != readers_.end())
        for (const GroupId other : found->second) add(other);
    if (is_short_launch(id))
      for (std::size_t i = place_[id] + 1; i < std::min(order_.size(), place_[id] + furthest); ++i)
        add(order_[i]);
    std::vector<GroupId> result;
    result.reserve(places.size());
    for (const std::size_t place : places) result.push_back(order_[place]);
    return result;
  }

  [[nodiscard]] bool is_short_launch(GroupId id) const {
    return on_device_ && type_of(groups_[id]).byte_size() <= short_launch_bytes;
  }

  [[nodiscard]] bool pays(GroupId id, GroupId other) const {
    if (elements_[other].writers.contains(id)) return reads_same_elements(id, other);
    if (is_short_launch(id)) return true;
    return std::ranges::any_of(elements_[id].reads, [&](ValueId value) {
      return elements_[other].reads.contains(value) && lie_alike(graph_.type(value), elements_[id].type);
    });
  }

  /// Does the other read a view of this group's results? One launch cannot write them and read them from memory.
  [[nodiscard]] bool reads_view(GroupId id, GroupId other) const {
    return std::ranges::any_of(elements_[other].reads, [&](ValueId value) {
      std::set<GroupId> viewed;
      if (!writers_.contains(value)) add_writers(graph_, writers_, value, viewed);
      return viewed.contains(id);
    });
  }

  /// Is all that the other makes of this group's results work on the same element? Then nothing is computed twice.
  [[nodiscard]] bool reads_same_elements(GroupId id, GroupId other) const {
    if (reads_view(id, other)) return false;
    std::set<ValueId> made(groups_[id].outputs.begin(), groups_[id].outputs.end());
    bool reads = false;
    for (const NodeId each : groups_[other].nodes) {
      const Node& node = graph_.node(each);
      if (!std::ranges::any_of(node.inputs, [&](ValueId input) { return made.contains(input); })) continue;
      reads = true;
      if (!has_trait(node.op, OpTrait::pointwise) ||
          !lie_alike(graph_.type(node.outputs[0]), elements_[id].type))
        return false;
      made.insert(node.outputs[0]);
    }
    return reads;
  }

  /// The next value of a state lies where the state does unless its kernel reads that, which would cost a copy.
  [[nodiscard]] bool reads_replaced_state(GroupId id, GroupId other) const {
    return std::ranges::any_of(groups_[id].outputs, [&](ValueId output) {
      const auto state = states_.find(output);
      return state != states_.end() && elements_[other].reads.contains(state->second);
    });
  }

  [[nodiscard]] bool fit(GroupId id, GroupId other) const {
    if (reads_replaced_state(id, other) || reads_replaced_state(other, id)) return false;
    std::set<NodeId> nodes(groups_[id].nodes.begin(), groups_[id].nodes.end());
    nodes.insert(groups_[other].nodes.begin(), groups_[other].nodes.end());
    std::set<ValueId> reads = elements_[id].reads;
    reads.insert(elements_[other].reads.begin(), elements_[other].reads.end());
    for (const ValueId output : groups_[id].outputs) reads.erase(output);
    std::erase_if(reads, [&](ValueId value) { return is_in_text(graph_.value(value)); });
    const std::vector<ValueId> outputs = outputs_of_both(id, other);
    return nodes.size() <= most_.nodes && reads.size() <= most_.inputs && outputs.size() <= most_.outputs &&
           keeps_overwrites({nodes.begin(), nodes.end()}, outputs);
  }

  /// What of both is read outside of them.
  [[nodiscard]] std::vector<ValueId> outputs_of_both(GroupId id, GroupId other) const {
    std::vector<ValueId> result;
    for (const ValueId output : groups_[id].outputs) {
      const auto found = readers_.find(output);
      const bool is_read =
          found == readers_.end() || found->second.empty() ||
          std::ranges::any_of(found->second, [&](GroupId reader) { return reader != other; });
      if (is_read || outputs_.contains(output) || viewed_.contains(output)) result.push_back(output);
    }
    result.insert(result.end(), groups_[other].outputs.begin(), groups_[other].outputs.end());
    return result;
  }

  /// The groups between that depend on the first, in order; nullopt where the other depends on one of them, or what lies
  /// between must stay where it is.
  [[nodiscard]] std::optional<std::vector<GroupId>> moved_behind(GroupId id, GroupId other) const {
    std::vector<GroupId> behind;
    std::set<GroupId> depend = {id};
    const bool stays = stays_in_memory(id) && stays_in_memory(other);
    if (!stays && place_[other] - place_[id] > furthest) return std::nullopt;
    for (std::size_t i = place_[id] + 1; i < place_[other]; ++i) {
      const GroupId between = order_[i];
      if (groups_[between].nodes.empty()) continue;
      if (is_fixed(between)) return std::nullopt;
      const auto is_of_first = [&](GroupId writer) { return depend.contains(writer); };
      if (!std::ranges::any_of(elements_[between].writers, is_of_first)) continue;
      depend.insert(between);
      behind.push_back(between);
    }
    depend.erase(id);
    const auto is_behind = [&](GroupId writer) { return depend.contains(writer); };
    if (std::ranges::any_of(elements_[other].writers, is_behind)) return std::nullopt;
    return behind;
  }

  /// Are its results those of the graph?
  [[nodiscard]] bool stays_in_memory(GroupId id) const {
    return std::ranges::all_of(groups_[id].outputs,
                               [&](ValueId output) { return outputs_.contains(output); });
  }

  /// What reads a value must not move behind what is written over it.
  [[nodiscard]] bool is_fixed(GroupId id) const {
    return std::ranges::any_of(groups_[id].nodes, [&](NodeId each) {
      return writes_in_place(graph_.node(each).op) || graph_.node(each).op == Op::loop;
    });
  }

  void join(GroupId id, GroupId other, const std::vector<GroupId>& behind) {
    std::vector<ValueId> outputs = outputs_of_both(id, other);
    for (const ValueId value : elements_[other].reads) {
      readers_[value].erase(other);
      readers_[value].insert(id);
    }
    for (const ValueId output : groups_[id].outputs) readers_[output].erase(id);
    for (const ValueId output : groups_[other].outputs) writers_[output] = id;
    for (Elements& each : elements_)
      if (each.writers.erase(other) > 0) each.writers.insert(id);
    Elements& both = elements_[id];
    both.reads.insert(elements_[other].reads.begin(), elements_[other].reads.end());
    for (const ValueId output : groups_[id].outputs) both.reads.erase(output);
    both.writers.insert(elements_[other].writers.begin(), elements_[other].writers.end());
    both.writers.erase(id);
    std::set<NodeId> nodes(groups_[id].nodes.begin(), groups_[id].nodes.end());
    nodes.insert(groups_[other].nodes.begin(), groups_[other].nodes.end());
    groups_[id] = {{nodes.begin(), nodes.end()},
                   std::move(outputs),
                   groups_[id].reason + "; beside " + groups_[other].reason};
    groups_[other] = {};
    reorder(id, place_[other], behind);
  }

  /// The group moves to the place `end` but for those that go behind it.
  void reorder(GroupId id, std::size_t end, const std::vector<GroupId>& behind) {
    const std::set<GroupId> last(behind.begin(), behind.end());
    const std::size_t first = place_[id];
    std::vector<GroupId> order;
    for (std::size_t i = first + 1; i <= end; ++i)
      if (!last.contains(order_[i])) order.push_back(order_[i]);
    order.push_back(id);
    order.insert(order.end(), behind.begin(), behind.end());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order_[first + i] = order[i];
      place_[order[i]] = first + i;
    }
  }

  const Graph& graph_;
  bool on_device_;
  Most most_;
  std::vector<Group> groups_;
  std::vector<GroupId> order_;                    ///< those that others took are empty
  std::vector<std::size_t> place_;                ///< per group, in the order
  std::vector<Elements> elements_;                ///< per group
  std::map<ValueId, std::set<GroupId>> readers_;  ///< groups that read a value itself
  std::map<ValueId, GroupId> writers_;            ///< of values that groups write
  std::set<ValueId> outputs_, inputs_;            ///< of the graph
  std::map<ValueId, ValueId> states_;             ///< by their next values
  std::map<ValueId, ValueId> overwritten_;        ///< inputs, by what is written over them
  std::set<ValueId> viewed_;                      ///< read by nodes that need no kernel
};

}  // namespace

std::vector<Group> join_elements(const Graph& graph, std::vector<Group> groups,
                                 const LoweringOptions& options) {
  return ElementJoiner(graph, std::move(groups), options).run();
}

}  // namespace sylvite
