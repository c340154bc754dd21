// Grouping in two walks. First, from the last anchor to the first, each takes the pointwise work on its
// result (epilogue): of two convolutions whose results are added, the later one adds. Then, from the last
// node to the first, what is still loose is computed inside its readers where they allow it, or starts a
// group of its own. Neither walk adds work that takes a product off a template of the device.

#include "lowering/plan/fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "frontend/graph/copy.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/fusion_rules.h"
#include "lowering/plan/group_body.h"
#include "lowering/plan/group_words.h"
#include "lowering/plan/join_elements.h"
#include "lowering/plan/repeats.h"
#include "lowering/plan/row_folds.h"
#include "lowering/plan/row_fusion.h"
#include "lowering/plan/template_keeper.h"
#include "lowering/plan/twin_folds.h"

namespace sylvite {
namespace {

constexpr std::size_t most_nodes = 48;       ///< per group: compile time grows with each
constexpr std::size_t most_gpu_nodes = 160;  ///< of samples between elements of volumes, say, one kernel
constexpr std::size_t most_inputs = 12;      ///< per group, besides its anchor's own
constexpr std::size_t most_gpu_inputs =
    32;  ///< weights and places of samples, until what they are made of is met
constexpr std::size_t most_repetitions = 4;  ///< groups that compute the same cheap node
constexpr int most_gathers = 2;              ///< behind each other: lines, then columns, of a resize

using NodeSet = TemplateKeeper::NodeSet;

/// A group being built. `allowance` has the nodes ahead of the anchor and what they, in turn, may read on the fly.
struct Draft {
  NodeSet nodes;
  NodeId root = no_node;    ///< whose outputs are written
  NodeId anchor = no_node;  ///< no_node: pointwise work and views only
  std::map<NodeId, Prologue> allowance;
  std::map<NodeId, int> gathers;  ///< of the group, behind each other, that read a node of it; 0 are left out
  std::string apart;              ///< what was left out for a template's sake, in words
};

/// Where a group may end.
struct End {
  NodeSet nodes;
  NodeId root = no_node;
};

class Fuser {
 public:
  Fuser(const Graph& graph, const IdMap<bool>& is_free, const LoweringOptions& options)
      : graph_(graph),
        is_free_(is_free),
        options_(options),
        templates_(graph, options),
        live_(live_nodes(graph)),
        readers_(graph.uses()),
        taken_(graph.nodes().size(), false),
        groups_of_(graph.nodes().size()),
        takes_gathers_(graph.nodes().size(), false),
        takes_steps_(graph.nodes().size(), false),
        is_output_(graph.values().size(), false) {
    for (ValueId output : graph.outputs) is_output_[output] = true;
    for (std::vector<NodeId>& readers : readers_)
      std::erase_if(readers, [&](NodeId id) { return !live_[id]; });
    takes_gathers_ = work_on([&](NodeId id) { return reads_elements(id); }, Role::pointwise);
    takes_steps_ = work_on([&](NodeId id) { return steps_along_rows(graph_, node(id)); }, Role::view);
  }

  std::vector<Group> run() {
    const auto count = static_cast<NodeId>(graph_.nodes().size());
    for (NodeId id = count; id-- > 0;) {
      const bool is_loose = live_[id] && !taken_[id] && !is_free_[id];
      if (is_loose && role_of(node(id)) == Role::anchor && !reads_elements(id)) grow_epilogue(id);
    }
    for (NodeId id = count; id-- > 0;)
      if (live_[id]) place(id);
    std::sort(drafts_.begin(), drafts_.end(), [](const Draft& a, const Draft& b) { return a.root < b.root; });
    std::vector<Group> groups;
    groups.reserve(drafts_.size());
    for (const Draft& draft : drafts_) groups.push_back(finished(draft));
    return groups;
  }

 private:
  [[nodiscard]] const Node& node(NodeId id) const { return graph_.node(id); }
  [[nodiscard]] bool reads_elements(NodeId id) const { return is_look_up(graph_, node(id), options_); }
  /// By node: does it work on what such nodes make and nobody else reads, itself or by such work? That is computed with it, but not
  /// where it would join some anchors.
  [[nodiscard]] IdMap<bool> work_on(const std::function<bool(NodeId)>& is_such, Role through) const {
    IdMap<bool> works(graph_.nodes().size(), false);
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes().size()); ++id) {
      const Role role = role_of(node(id));
      works[id] = (role == Role::pointwise || role == through) &&
                  std::ranges::any_of(node(id).inputs, [&](ValueId input) {
                    const NodeId producer = input == no_value ? no_node : graph_.value(input).producer;
                    return producer != no_node && (is_such(producer) || works[producer]) &&
                           readers_[input].size() == 1;
                  });
    }
    return works;
  }

  // --- First walk: epilogues.

  /// Adds readers of the anchor's result as long as they fit. The group may end wherever only one value is
  /// read from outside; it ends at the last such place.
  void grow_epilogue(NodeId anchor) {
    NodeSet inside = {anchor};
    std::vector<End> ends = {{inside, anchor}};
    while (takes_epilogue(node(anchor)) && inside.size() < most_nodes) {
      const std::optional<NodeId> next = next_reader(inside);
      if (!next || !fits_epilogue(*next, inside, anchor)) break;
      inside.insert(*next);
      const std::optional<NodeId> end = only_open(inside);
      if (end && count_inputs(inside) <= inputs_allowed(anchor)) ends.push_back({inside, *end});
    }
    Draft draft{{}, no_node, anchor, {}, {}, ""};
    draft.apart = leave_out(anchor, ends);
    if (ends.size() > 1 && ends.back().nodes.size() == ends[ends.size() - 2].nodes.size() + 1 &&
        is_widened_by_readers(ends.back().root))
      ends.pop_back();
    while (ends.size() > 1 && is_last_view(ends.back())) ends.pop_back();
    draft.nodes = ends.back().nodes;
    draft.root = ends.back().root;
    for (NodeId id : rows_ahead(graph_, anchor, readers_, options_)) {
      draft.nodes.insert(id);
      draft.allowance[id] = Prologue::none;
    }
    for (NodeId id : draft.nodes) taken_[id] = true;
    epilogues_[draft.root] = std::move(draft);
  }

  /// What is widened last takes less memory as it was, where several read it and each may widen it itself.
  [[nodiscard]] bool is_widened_by_readers(NodeId id) const {
    const ValueId output = node(id).outputs[0];
    const std::vector<NodeId>& readers = readers_[output];
    if (!is_widening(graph_, node(id)) || is_output_[output] || readers.size() < 2) return false;
    return std::all_of(readers.begin(), readers.end(), [&](NodeId reader) {
      const Node& at = node(reader);
      if (role_of(at) != Role::anchor) return role_of(at) == Role::pointwise;
      for (std::size_t i = 0; i < at.inputs.size(); ++i)
        if (at.inputs[i] == output && prologue_of(at, i) < Prologue::cheap) return false;
      return true;
    });
  }

  /// A reshape behind all else moves nothing: inside it would make places of elements, which other views want anyway.
  [[nodiscard]] bool is_last_view(const End& end) const {
    return node(end.root).op == Op::reshape && is_free_[end.root] &&
           std::ranges::count_if(end.nodes, [&](NodeId id) { return role_of(node(id)) == Role::view; }) == 1;
  }

  /// Drops the ends at which the product is off the template that takes it alone, and says why.
  std::string leave_out(NodeId anchor, std::vector<End>& ends) {
    if (!(templates_.asks_about(anchor) || templates_.asks_about_turned(ends.back().nodes, anchor)) ||
        keeps_template(ends.back(), anchor) || !keeps_template(ends.front(), anchor))
      return "";
    std::string why;
    for (; !keeps_template(ends.back(), anchor); ends.pop_back()) {
      const NodeSet& before = ends[ends.size() - 2].nodes;
      const NodeId first = *std::find_if(ends.back().nodes.begin(), ends.back().nodes.end(),
                                         [&](NodeId id) { return !before.contains(id); });
      why = without(first, templates_.refusal(ends.back().nodes, ends.back().root));
    }
    return why;
  }

  /// What its epilogue reads may still be computed inside, in the second walk.
  [[nodiscard]] bool keeps_template(const End& end, NodeId anchor) {
    return templates_.refusal(end.nodes, end.root).empty() ||
           templates_.refusal(with_side_inputs(end.nodes, anchor), end.root).empty();
  }

  /// With what is loose and read by the epilogue alone.
  [[nodiscard]] NodeSet with_side_inputs(NodeSet nodes, NodeId anchor) const {
    for (NodeId id = *nodes.rbegin(); id-- > 0;) {
      const Node& candidate = node(id);
      const bool is_loose = live_[id] && !taken_[id] && !is_free_[id] && role_of(candidate) != Role::anchor;
      const std::vector<ValueId>& operands = node(anchor).inputs;
      const bool is_operand = std::ranges::find(operands, candidate.outputs[0]) != operands.end();
      if (is_loose && !is_operand && !is_open(id, nodes)) nodes.insert(id);
    }
    return nodes;
  }

  [[nodiscard]] bool is_open(NodeId id, const NodeSet& inside) const {
    for (ValueId output : node(id).outputs) {
      if (is_output_[output]) return true;
      for (NodeId reader : readers_[output])
        if (!inside.contains(reader)) return true;
    }
    return false;
  }

  [[nodiscard]] std::optional<NodeId> only_open(const NodeSet& inside) const {
    std::optional<NodeId> found;
    for (NodeId id : inside) {
      if (!is_open(id, inside)) continue;
      if (found) return std::nullopt;
      found = id;
    }
    return found;
  }

  /// The first reader outside, in graph order: anything that depends on it comes later, so no cycle can
  /// arise. None when a value inside is a graph output, which must be written as it is.
  [[nodiscard]] std::optional<NodeId> next_reader(const NodeSet& inside) const {
    std::optional<NodeId> first;
    for (NodeId id : inside) {
      for (ValueId output : node(id).outputs) {
        if (is_output_[output]) return std::nullopt;
        for (NodeId reader : readers_[output])
          if (!inside.contains(reader) && (!first || reader < *first)) first = reader;
      }
    }
    return first;
  }

  [[nodiscard]] bool fits_epilogue(NodeId id, const NodeSet& inside, NodeId anchor) const {
    const Node& candidate = node(id);
    const Role role = role_of(candidate);
    if (taken_[id] || (role != Role::view && role != Role::pointwise)) return false;
    if (role == Role::view) return takes_view_epilogue(graph_, node(anchor), candidate, options_);
    const TensorType& type = graph_.type(candidate.outputs[0]);
    return std::all_of(candidate.inputs.begin(), candidate.inputs.end(), [&](ValueId input) {
      const NodeId producer = input == no_value ? no_node : graph_.value(input).producer;
      if (producer == no_node || !inside.contains(producer)) return true;
      return graph_.type(input).shape == type.shape && graph_.type(input).layout == type.layout;
    });
  }

  /// A concat may have many inputs of its own.
  [[nodiscard]] std::size_t inputs_allowed(NodeId anchor) const {
    return (options_.refuse_template ? most_gpu_inputs : most_inputs) +
           (anchor == no_node ? 0 : node(anchor).inputs.size());
  }

  [[nodiscard]] std::size_t count_inputs(const NodeSet& nodes) const {
    std::set<ValueId> inputs;
    for (NodeId id : nodes) {
      for (ValueId input : node(id).inputs) {
        if (input == no_value) continue;
        const Value& value = graph_.value(input);
        if (!is_in_text(value) && (value.producer == no_node || !nodes.contains(value.producer)))
          inputs.insert(input);
      }
    }
    return inputs.size();
  }

  // --- Second walk: everything else.

  void place(NodeId id) {
    if (const auto found = epilogues_.find(id); found != epilogues_.end()) return add_draft(found->second);
    if (taken_[id] || is_free_[id]) return;
    const std::set<std::size_t> groups = reading_groups(id);
    const bool few = groups.size() == 1 || reads_less(graph_, node(id), options_) ||
                     (groups.size() <= most_repetitions && is_repeated(id));
    const auto takes = [&](std::size_t group) {
      return allowance_in(drafts_[group], id).has_value() && !computes_again(drafts_[group], id);
    };
    const bool joins = few && !groups.empty() && std::ranges::all_of(groups, takes);
    if (!joins) return add_draft({{id}, id, no_node, {}, {}, ""});
    if (leaves_template(groups, id)) {
      if (groups.size() != 1 || !leave_together(*groups.begin(), id))
        add_draft({{id}, id, no_node, {}, {}, ""});
      return;
    }
    for (std::size_t group : groups) join(group, id);
  }

  [[nodiscard]] bool computes_again(const Draft& draft, NodeId id) const {
    if (options_.refuse_template) return repeats_too_often(graph_, draft.nodes, id, readers_);
    return draft.anchor == no_node && is_shared_work(graph_, draft.root, id);
  }

  /// A GPU computes in less time than it takes to write and read.
  [[nodiscard]] bool is_repeated(NodeId id) const {
    const auto is_work = [&](NodeId each) { return live_[each] && !taken_[each] && !is_free_[each]; };
    return is_worth_repeating(graph_, node(id)) ||
           (options_.refuse_template && is_made_of_less(graph_, id, is_work));
  }

  /// Makes a group of `id` and of the work between it and the epilogue of `group`, which reads it, where the one result of that
  /// work takes less memory than what it reads.
  bool leave_together(std::size_t group, NodeId id) {
    const NodeSet &all = drafts_[group].nodes, beside = work_beside(drafts_[group], id);
    if (drafts_[group].anchor == no_node || beside.empty()) return false;
    NodeSet rest = all, together = beside;
    for (const NodeId each : beside) rest.erase(each);
    together.insert(id);
    std::optional<NodeId> root = only_open(together);
    for (; root && is_widening(graph_, node(*root)); root = only_open(together)) {
      together.erase(*root);  // it reads less than it makes
      rest.insert(*root);
    }
    if (!root || graph_.type(node(*root).outputs[0]).byte_size() >= bytes_read(graph_, beside)) return false;
    drafts_[group].nodes = rest;
    add_draft({together, *root, no_node, {}, {}, ""});
    return true;
  }

  /// What of a group reads `id`, directly or not, and is nothing that its anchor is ahead of or behind.
  [[nodiscard]] NodeSet work_beside(const Draft& draft, NodeId id) const {
    NodeSet behind_anchor, beside;
    const auto reads = [&](NodeId reader, const NodeSet& of, NodeId one) {
      return std::ranges::any_of(node(reader).inputs, [&](ValueId input) {
        const NodeId producer = input == no_value ? no_node : graph_.value(input).producer;
        return producer != no_node && (producer == one || of.contains(producer));
      });
    };
    for (const NodeId each : draft.nodes) {
      if (each == draft.anchor || reads(each, behind_anchor, draft.anchor)) behind_anchor.insert(each);
      const bool is_apart = !behind_anchor.contains(each) && !draft.allowance.contains(each) &&
                            groups_of_[each].size() == 1 && role_of(node(each)) == Role::pointwise;
      if (is_apart && reads(each, beside, id)) beside.insert(each);
    }
    return beside;
  }

  /// Whether joining its readers takes a product among them off its template: its group says so.
  bool leaves_template(const std::set<std::size_t>& groups, NodeId id) {
    bool leaves = false;
    for (const std::size_t group : groups) {
      Draft& draft = drafts_[group];
      const std::string& why = loss(draft, id);
      if (why.empty()) continue;
      draft.apart += without(id, why);
      leaves = true;
    }
    return leaves;
  }

  /// Templates read operands and epilogues apart from each other: an operand is also asked about without the
  /// epilogue, which may come to fit only when all of it is there.
  const std::string& loss(const Draft& draft, NodeId id) {
    static const std::string none;
    if (!templates_.asks_about(draft.anchor) && !turns_fold(draft, id) && !turns_much(draft, id)) return none;
    const std::string& whole = templates_.loss(draft.nodes, id, draft.root);
    if (!whole.empty() || !allowance_in(draft, id)->ahead) return whole;
    NodeSet front = {draft.anchor};
    for (const auto& [ahead, allowance] : draft.allowance) front.insert(ahead);
    return templates_.loss(front, id, draft.anchor);
  }

  /// Folds take any work on numbers with them, but not every view, where they lie in columns.
  [[nodiscard]] bool turns_fold(const Draft& draft, NodeId id) const {
    return options_.refuse_template && draft.anchor != no_node && role_of(node(id)) == Role::view &&
           has_trait(node(draft.anchor).op, OpTrait::reduction);
  }

  [[nodiscard]] bool turns_much(const Draft& draft, NodeId id) const {
    return options_.refuse_template && draft.anchor == no_node && is_large_turn(graph_, node(draft.root)) &&
           !reads_turned(graph_, node(id));
  }

  void add_draft(Draft draft) {
    for (NodeId id : draft.nodes) groups_of_[id] = {drafts_.size()};
    drafts_.push_back(std::move(draft));
  }

  void join(std::size_t group, NodeId id) {
    Draft& draft = drafts_[group];
    const Reading reading = *allowance_in(draft, id);
    if (reading.ahead) draft.allowance[id] = reading.allowance;
    if (reading.gathers > 0) draft.gathers[id] = reading.gathers;
    draft.nodes.insert(id);
    groups_of_[id].insert(group);
  }

  /// The groups that read the node's result; empty when it must be in memory for another reason.
  [[nodiscard]] std::set<std::size_t> reading_groups(NodeId id) const {
    std::set<std::size_t> groups;
    for (ValueId output : node(id).outputs) {
      if (is_output_[output]) return {};
      for (NodeId reader : readers_[output]) {
        if (groups_of_[reader].empty()) return {};
        groups.insert(groups_of_[reader].begin(), groups_of_[reader].end());
      }
    }
    return groups;
  }

  struct Reading {
    bool ahead = false;  ///< the anchor reads it
    Prologue allowance = Prologue::any;
    int gathers = 0;
  };

  /// How the group would read the node's result if it computed it, or nothing when it would not.
  [[nodiscard]] std::optional<Reading> allowance_in(const Draft& draft, NodeId id) const {
    const Node& candidate = node(id);
    if (draft.nodes.size() >= (options_.refuse_template ? most_gpu_nodes : most_nodes)) return std::nullopt;
    Reading reading;
    for (NodeId reader : readers_[candidate.outputs[0]]) {
      if (!draft.nodes.contains(reader)) continue;
      if (options_.refuse_template && gathers_turned_rows(graph_, candidate, node(reader))) return {};
      reading.allowance = std::min(reading.allowance, allowance_at(draft, candidate, reader));
      reading.ahead = reading.ahead || reader == draft.anchor || draft.allowance.contains(reader);
      const auto behind = draft.gathers.find(reader);
      const int gathers = behind == draft.gathers.end() ? 0 : behind->second;
      reading.gathers = std::max(reading.gathers, gathers + (reads_elements(reader) ? 1 : 0));
    }
    const bool is_apart = draft.anchor != no_node
                              ? !folds_look_ups(graph_, node(draft.anchor), candidate, options_)
                              : turns_apart(graph_, draft.nodes, candidate, options_);
    if (is_apart && (reads_elements(id) || takes_gathers_[id])) return std::nullopt;
    if (takes_steps_[id] && draft.anchor != no_node && pads_rows(graph_, node(draft.anchor), options_))
      return std::nullopt;
    if (!reads_elements(id) && cost_of(graph_, candidate) > reading.allowance) return std::nullopt;
    const bool is_small = role_of(candidate) == Role::view || is_widening(graph_, candidate);
    if (reading.gathers >= most_gathers && !is_small) return std::nullopt;
    if (draft.anchor != no_node && role_of(candidate) == Role::view &&
        !takes_view_prologue(graph_, node(draft.anchor), candidate, reading.ahead))
      return std::nullopt;
    NodeSet together = draft.nodes;
    together.insert(id);
    return count_inputs(together) > inputs_allowed(draft.anchor) ? std::nullopt : std::optional(reading);
  }

  [[nodiscard]] Prologue allowance_at(const Draft& draft, const Node& candidate, NodeId reader) const {
    Prologue allowance = Prologue::any;
    const Node& at = node(reader);
    // Vectors read dense elements of memory in less time than one by one.
    if (reader == draft.anchor || (!options_.refuse_template && reads_elements(reader))) {
      for (std::size_t i = 0; i < at.inputs.size(); ++i) {
        if (at.inputs[i] != candidate.outputs[0]) continue;
        const bool copies = i == 0 && (rounds_image(graph_, at, candidate) || copies_source(graph_, at));
        const bool packs = i == 1 && packs_filter(graph_, at, options_);
        const bool repeats_rows = options_.refuse_template && has_trait(at.op, OpTrait::scatter) &&
                                  candidate.op == Op::broadcast_to;
        const Prologue own = packs || repeats_rows ? Prologue::views : prologue_of(at, i);
        allowance = std::min(allowance, copies ? Prologue::cheap : own);
      }
    } else if (const auto ahead = draft.allowance.find(reader); ahead != draft.allowance.end()) {
      allowance = ahead->second;
    }
    const bool repeats = reader != draft.anchor && graph_.type(candidate.outputs[0]).element_count() <
                                                       graph_.type(at.outputs[0]).element_count();
    return repeats ? std::min(allowance, Prologue::cheap) : allowance;
  }

  // --- Words.

  [[nodiscard]] Group finished(const Draft& draft) const {
    NodeSet ahead;
    for (const auto& [id, allowance] : draft.allowance) ahead.insert(id);
    const std::string reason = what_is_grouped(graph_, draft.nodes, draft.anchor, ahead) +
                               why_group_ends(graph_, draft.root, readers_, is_output_) + draft.apart;
    return {{draft.nodes.begin(), draft.nodes.end()}, node(draft.root).outputs, reason};
  }

  [[nodiscard]] std::string without(NodeId id, const std::string& why) const {
    return fmt::format("; without {}, with which no template takes it: {}", op_info(node(id).op).name, why);
  }

  const Graph& graph_;
  const IdMap<bool>& is_free_;  ///< per node
  const LoweringOptions& options_;
  TemplateKeeper templates_;
  IdMap<bool> live_;
  IdMap<std::vector<NodeId>> readers_;  ///< per value
  IdMap<bool> taken_;                   ///< per node: in an anchor's group after the first walk
  std::map<NodeId, Draft> epilogues_;   ///< by root
  std::vector<Draft> drafts_;
  IdMap<std::set<std::size_t>> groups_of_;  ///< per node: indices into drafts_
  IdMap<bool> takes_gathers_;               ///< per node
  IdMap<bool> takes_steps_;                 ///< per node: work on slices that step along rows
  IdMap<bool> is_output_;                   ///< per value
};

}  // namespace

std::vector<Group> group_nodes(const Graph& graph, const Joins& joins, const LoweringOptions& options) {
  IdMap<bool> free = joins.is_joined;
  const auto count = static_cast<NodeId>(graph.nodes().size());
  for (NodeId id = 0; id < count; ++id) free[id] = free[id] || is_free(graph, graph.node(id));
  if (options.fuse) {
    std::vector<Group> groups = Fuser(graph, free, options).run();
    if (options.refuse_template)
      groups = join_twin_folds(graph, join_row_folds(graph, std::move(groups), options), options);
    return join_elements(graph, std::move(groups), options);
  }
  const IdMap<bool> live = live_nodes(graph);
  std::vector<Group> groups;
  for (NodeId id = 0; id < count; ++id)
    if (live[id] && !free[id]) groups.push_back({{id}, graph.node(id).outputs, "alone"});
  return groups;
}

}  // namespace sylvite
