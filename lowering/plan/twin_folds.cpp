#include "lowering/plan/twin_folds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/group_body.h"
#include "lowering/plan/group_reads.h"

namespace sylvite {
namespace {

constexpr std::int64_t small_bytes = 1 << 20;  ///< what folds read in less time than a launch takes
constexpr std::int64_t much_bytes = 16 << 20;  ///< what folds read in more time than a launch takes
constexpr std::size_t most_apart = 64;         ///< groups between twins

/// What one group folds, and reads and writes.
struct Candidate {
  NodeId fold = no_node;  ///< one of them; no_node: its group is no candidate
  int folds = 0;
  std::set<ValueId> inputs;
};

class TwinJoiner {
 public:
  TwinJoiner(const Graph& graph, std::vector<Group> groups, const LoweringOptions& options)
      : graph_(graph), groups_(std::move(groups)), options_(options) {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      for (const ValueId output : groups_[i].outputs) writers_[output] = i;
      candidates_.push_back(candidate_of(groups_[i]));
    }
  }

  std::vector<Group> run() {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const std::size_t end = std::min(groups_.size(), i + most_apart);
      for (std::size_t j = i + 1; j < end && candidates_[i].fold != no_node; ++j)
        if (are_twins(i, j))
          join(i, j);
        else if (const std::optional<Group> fold = twin_within(i, j))
          join_part(i, j, *fold);
    }
    std::erase_if(groups_, [](const Group& group) { return group.nodes.empty(); });
    return std::move(groups_);
  }

 private:
  [[nodiscard]] Candidate candidate_of(const Group& group) const {
    Candidate candidate;
    candidate.inputs = values_read(graph_, group);
    for (const NodeId id : group.nodes)
      if (has_trait(graph_.node(id).op, OpTrait::reduction)) candidate.fold = id, ++candidate.folds;
    return candidate;
  }

  [[nodiscard]] std::set<std::size_t> read_groups(std::size_t i) const {
    std::set<std::size_t> found;
    for (const ValueId input : candidates_[i].inputs) add_writers(graph_, writers_, input, found);
    return found;
  }

  [[nodiscard]] const TensorType& folded_type(std::size_t i) const {
    return graph_.type(graph_.node(candidates_[i].fold).inputs[0]);
  }

  /// Is a value that both read nearly all that they fold, or is that little?
  [[nodiscard]] bool pays(std::size_t i, std::size_t j) const {
    const TensorType& type = folded_type(i);
    if (type.byte_size() <= small_bytes) return true;
    return std::ranges::any_of(candidates_[i].inputs, [&](ValueId input) {
      return candidates_[j].inputs.contains(input) &&
             graph_.type(input).element_count() * 2 > type.element_count();
    });
  }

  /// Do both fold over the same dims of values that lie alike?
  [[nodiscard]] bool fold_alike(std::size_t i, std::size_t j) const {
    return candidates_[i].fold != no_node && candidates_[j].fold != no_node &&
           folded_axes(graph_.node(candidates_[i].fold)) == folded_axes(graph_.node(candidates_[j].fold)) &&
           folded_type(i).dims() == folded_type(j).dims() && folded_type(i).layout == folded_type(j).layout;
  }

  /// Both stand where the first does, as all that the second reads is there.
  [[nodiscard]] bool are_twins(std::size_t i, std::size_t j) const {
    if (!fold_alike(i, j) || !pays(i, j)) return false;
    const std::set<std::size_t> read = read_groups(j);
    if (!read.empty() && *read.rbegin() >= i) return false;
    return options_.refuse_template(kernel_of(graph_, joined(groups_[i], groups_[j]))).empty();
  }

  /// Of group `j`, whose work on its fold reads what `i` folds, as a variance reads the mean: the fold with what is ahead of it,
  /// where that is a twin of `i`, and much is read once instead of twice.
  [[nodiscard]] std::optional<Group> twin_within(std::size_t i, std::size_t j) const {
    if (candidates_[j].folds > 1 || groups_[j].outputs.size() > 1 || !fold_alike(i, j) ||
        folded_type(i).byte_size() < much_bytes || !pays(i, j))
      return std::nullopt;
    std::optional<Group> part = front_of_fold(graph_, groups_[j], candidates_[j].fold);
    if (!part) return std::nullopt;
    std::set<std::size_t> read;
    for (const ValueId input : values_read(graph_, *part)) add_writers(graph_, writers_, input, read);
    if (!read.empty() && *read.rbegin() >= i) return std::nullopt;
    if (!options_.refuse_template(kernel_of(graph_, joined(groups_[i], *part))).empty()) return std::nullopt;
    return part;
  }

  [[nodiscard]] static Group joined(const Group& first, const Group& second) {
    std::set<NodeId> nodes(first.nodes.begin(), first.nodes.end());
    nodes.insert(second.nodes.begin(), second.nodes.end());
    std::vector<ValueId> outputs = first.outputs;
    outputs.insert(outputs.end(), second.outputs.begin(), second.outputs.end());
    return {{nodes.begin(), nodes.end()}, std::move(outputs), first.reason + "; beside " + second.reason};
  }

  /// Which may take further ones.
  void join(std::size_t i, std::size_t j) {
    groups_[i] = joined(groups_[i], groups_[j]);
    for (const ValueId output : groups_[j].outputs) writers_[output] = i;
    groups_[j] = {};
    candidates_[i].inputs.insert(candidates_[j].inputs.begin(), candidates_[j].inputs.end());
    candidates_[j] = {};
  }

  /// What is left of `j` is work on both results.
  void join_part(std::size_t i, std::size_t j, const Group& fold) {
    groups_[i] = joined(groups_[i], fold);
    writers_[fold.outputs[0]] = i;
    std::erase_if(groups_[j].nodes,
                  [&](NodeId id) { return std::ranges::find(fold.nodes, id) != fold.nodes.end(); });
    groups_[j].reason = "work on several folds";
    candidates_[i].inputs = values_read(graph_, groups_[i]);
    candidates_[j] = {};
  }

  const Graph& graph_;
  std::vector<Group> groups_;
  const LoweringOptions& options_;
  std::vector<Candidate> candidates_;       ///< per group
  std::map<ValueId, std::size_t> writers_;  ///< per value that a group writes
};

}  // namespace

std::vector<Group> join_twin_folds(const Graph& graph, std::vector<Group> groups,
                                   const LoweringOptions& options) {
  return TwinJoiner(graph, std::move(groups), options).run();
}

}  // namespace sylvite
