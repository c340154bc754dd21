#include "lowering/plan/row_folds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "frontend/ops/op_table.h"
#include "lowering/plan/fusion_rules.h"
#include "lowering/plan/group_body.h"
#include "lowering/plan/group_reads.h"

namespace sylvite {
namespace {

/// Of rows, or of the rows of columns, whose results are read beside what was folded.
bool is_row_fold(const Node& node) {
  return has_trait(node.op, OpTrait::reduction) && node.attributes.has("axes") &&
         node.attributes.integer("keepdims") != 0 && !node.attributes.integers("axes").empty();
}

/// The only anchor of what has one output, if it is a fold.
const Node* only_fold(const Graph& graph, const Group& group) {
  const Node* anchor = nullptr;
  for (const NodeId id : group.nodes) {
    if (role_of(graph.node(id)) != Role::anchor) continue;
    if (anchor != nullptr) return nullptr;
    anchor = &graph.node(id);
  }
  const bool is_fold = anchor != nullptr && has_trait(anchor->op, OpTrait::reduction);
  return is_fold && group.outputs.size() == 1 ? anchor : nullptr;
}
bool is_work(const Graph& graph, const Group& group) {
  return group.outputs.size() == 1 && std::ranges::none_of(group.nodes, [&](NodeId id) {
           return role_of(graph.node(id)) == Role::anchor;
         });
}

class RowFolder {
 public:
  RowFolder(const Graph& graph, std::vector<Group> groups, const LoweringOptions& options)
      : graph_(graph),
        groups_(std::move(groups)),
        options_(options),
        readers_(graph.uses()),
        groups_of_(graph.nodes().size()) {
    for (const ValueId output : graph.outputs) outputs_.insert(output);
    for (std::size_t i = 0; i < groups_.size(); ++i)
      for (const NodeId id : groups_[i].nodes) groups_of_[id].insert(i);
  }

  std::vector<Group> run() {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (is_work(graph_, groups_[i])) take_sums(i);
      const Node* fold = only_fold(graph_, groups_[i]);
      if (fold != nullptr && is_row_fold(*fold)) sums_[groups_[i].outputs[0]] = i;
    }
    for (std::size_t i = groups_.size(); i-- > 0;)  // the last sum of several may take all that it is made of
      if (only_fold(graph_, groups_[i]) != nullptr) {
        bool has_taken = take_sums(i);
        while (has_taken) has_taken = take_sums(i, true);  // what it took may read further ones
        join_front(i);
      }
    std::erase_if(groups_, [](const Group& group) { return group.nodes.empty(); });
    return std::move(groups_);
  }

 private:
  /// Those that group i reads; with `near_alone` those that fold what it reads anyway, or little.
  bool take_sums(std::size_t i, bool near_alone = false) {
    std::set<NodeId> nodes(groups_[i].nodes.begin(), groups_[i].nodes.end());
    std::vector<std::size_t> taken;
    for (const auto& [value, sum] : sums_) {
      const bool is_read =
          std::ranges::any_of(readers_[value], [&](NodeId id) { return nodes.contains(id); });
      if (is_read && (!near_alone || is_near(sum, i))) taken.push_back(sum);
    }
    // What others read of memory before this group stays where it is made.
    for (std::size_t count = 0; count != taken.size();) {
      count = taken.size();
      std::erase_if(taken, [&](std::size_t sum) { return is_read_between(sum, i, taken); });
    }
    if (taken.empty()) return false;
    std::string reason = groups_[i].reason;
    for (const std::size_t sum : taken) {
      nodes.insert(groups_[sum].nodes.begin(), groups_[sum].nodes.end());
      reason += "; with " + groups_[sum].reason;
    }
    const std::optional<std::set<NodeId>> views = views_of(taken, nodes);
    if (!views) return false;
    std::vector<ValueId> outputs = groups_[i].outputs;
    for (const std::size_t sum : taken)
      if (is_read_outside(groups_[sum].outputs[0], i, taken, *views))
        outputs.push_back(groups_[sum].outputs[0]);
    nodes.insert(views->begin(), views->end());
    Group together{{nodes.begin(), nodes.end()}, std::move(outputs), std::move(reason)};
    if (!options_.refuse_template(kernel_of(graph_, together)).empty()) return false;
    sums_.erase(groups_[i].outputs[0]);
    for (const std::size_t sum : taken) {
      sums_.erase(groups_[sum].outputs[0]);
      for (const NodeId id : groups_[sum].nodes) {
        groups_of_[id].erase(sum);
        groups_of_[id].insert(i);
      }
      groups_[sum] = {};
    }
    groups_[i] = std::move(together);
    return true;
  }

  /// Does a sum fold what group i reads anyway, or little? Else what it folds would stay in memory until then.
  [[nodiscard]] bool is_near(std::size_t sum, std::size_t i) const {
    constexpr std::int64_t little = 1 << 20;  // bytes, which are read in less time than a launch takes
    const std::set<ValueId> read = values_read(graph_, groups_[i]);
    return std::ranges::all_of(values_read(graph_, groups_[sum]), [&](ValueId id) {
      return read.contains(id) || graph_.type(id).byte_size() <= little;
    });
  }

  /// What a fold of many elements takes of another that stays where it is made, as its results are read on the way: both are made
  /// there, with the work behind the fold where all that it reads is there.
  void join_front(std::size_t i) {
    constexpr std::int64_t much_bytes = 16 << 20;  // which take longer to read than a launch takes
    const auto fold =
        std::ranges::find_if(groups_[i].nodes, [&](NodeId id) { return is_row_fold(graph_.node(id)); });
    if (fold == groups_[i].nodes.end() || graph_.type(graph_.node(*fold).inputs[0]).byte_size() < much_bytes)
      return;
    std::vector<Group> fronts = {groups_[i]};
    if (std::optional<Group> front = front_of_fold(graph_, groups_[i], *fold))
      fronts.push_back(std::move(*front));
    for (const Group& front : fronts)
      if (front.outputs.size() == 1 && join_front(i, front)) return;
  }
  bool join_front(std::size_t i, const Group& front) {
    for (const auto& [value, first] : sums_) {
      if (first >= i || !values_read(graph_, front).contains(value) || !is_made_before(front, value, first))
        continue;
      std::set<NodeId> nodes(groups_[first].nodes.begin(), groups_[first].nodes.end());
      nodes.insert(front.nodes.begin(), front.nodes.end());
      Group together{{nodes.begin(), nodes.end()},
                     {value, front.outputs[0]},
                     groups_[first].reason + "; beside " + front.reason};
      if (!options_.refuse_template(kernel_of(graph_, together)).empty()) continue;
      for (const NodeId id : front.nodes) {
        groups_of_[id].erase(i);
        groups_of_[id].insert(first);
      }
      sums_.erase(groups_[i].outputs[0]);
      leave(i, front);
      groups_[first] = std::move(together);
      sums_.erase(value);
      return true;
    }
    return false;
  }

  /// Group i without nodes that another makes.
  void leave(std::size_t i, const Group& front) {
    std::erase_if(groups_[i].nodes,
                  [&](NodeId id) { return std::ranges::find(front.nodes, id) != front.nodes.end(); });
    if (groups_[i].nodes.empty())
      groups_[i] = {};
    else
      groups_[i].reason = "work on several folds";
  }

  /// All but `value` that a group reads, before group `first`?
  [[nodiscard]] bool is_made_before(const Group& group, ValueId value, std::size_t first) const {
    std::map<ValueId, std::size_t> writers;  // of all groups: what these read in turn is made before them
    for (std::size_t i = 0; i < groups_.size(); ++i)
      for (const ValueId output : groups_[i].outputs) writers[output] = i;
    std::set<std::size_t> found;
    for (const ValueId read : values_read(graph_, group))
      if (read != value) add_writers(graph_, writers, read, found);
    return found.empty() || *found.rbegin() <= first;
  }

  /// Through which views `nodes` read what is taken; nullopt where others read such a view, too.
  [[nodiscard]] std::optional<std::set<NodeId>> views_of(const std::vector<std::size_t>& taken,
                                                         const std::set<NodeId>& nodes) const {
    std::set<NodeId> views;
    for (const NodeId id : nodes)
      for (ValueId input : graph_.node(id).inputs) {
        std::vector<NodeId> seen;
        while (input != no_value && graph_.value(input).producer != no_node &&
               groups_of_[graph_.value(input).producer].empty()) {
          seen.push_back(graph_.value(input).producer);
          input = graph_.node(seen.back()).inputs.empty() ? no_value : graph_.node(seen.back()).inputs[0];
        }
        const bool is_taken =
            std::ranges::any_of(taken, [&](std::size_t sum) { return groups_[sum].outputs[0] == input; });
        if (is_taken) views.insert(seen.begin(), seen.end());
      }
    const bool is_own = std::ranges::all_of(views, [&](NodeId view) {
      const ValueId made = graph_.node(view).outputs[0];
      return !outputs_.contains(made) && std::ranges::all_of(readers_[made], [&](NodeId id) {
        return nodes.contains(id) || views.contains(id);
      });
    });
    return is_own ? std::optional(views) : std::nullopt;
  }

  /// Outside of group i, those that it takes, and `views`. Nodes may be in several groups.
  [[nodiscard]] bool is_read_outside(ValueId value, std::size_t i, const std::vector<std::size_t>& taken,
                                     const std::set<NodeId>& views) const {
    return outputs_.contains(value) || std::ranges::any_of(readers_[value], [&](NodeId id) {
             if (views.contains(id)) return false;
             return groups_of_[id].empty() || std::ranges::any_of(groups_of_[id], [&](std::size_t group) {
                      return group != i && std::ranges::find(taken, group) == taken.end();
                    });
           });
  }

  /// Is `value` what `id` is, or what it is a view of?
  [[nodiscard]] bool is_seen_in(ValueId value, ValueId id) const {
    if (id == value || id == no_value) return id == value;
    const NodeId producer = graph_.value(id).producer;
    return producer != no_node && groups_of_[producer].empty() &&
           std::ranges::any_of(graph_.node(producer).inputs,
                               [&](ValueId input) { return is_seen_in(value, input); });
  }

  [[nodiscard]] bool is_read_between(std::size_t sum, std::size_t end,
                                     const std::vector<std::size_t>& taken) const {
    const ValueId value = groups_[sum].outputs[0];
    for (std::size_t i = sum + 1; i < end; ++i) {
      if (std::ranges::find(taken, i) != taken.end()) continue;
      for (const NodeId id : groups_[i].nodes)
        if (std::ranges::any_of(graph_.node(id).inputs,
                                [&](ValueId input) { return is_seen_in(value, input); }))
          return true;
    }
    return false;
  }

  const Graph& graph_;
  std::vector<Group> groups_;
  const LoweringOptions& options_;
  IdMap<std::vector<NodeId>> readers_;      ///< per value
  IdMap<std::set<std::size_t>> groups_of_;  ///< per node; those in none need no kernel
  std::set<ValueId> outputs_;               ///< of the graph
  std::map<ValueId, std::size_t> sums_;     ///< groups before, by what they write
};

}  // namespace

std::vector<Group> join_row_folds(const Graph& graph, std::vector<Group> groups,
                                  const LoweringOptions& options) {
  return RowFolder(graph, std::move(groups), options).run();
}

}  // namespace sylvite
