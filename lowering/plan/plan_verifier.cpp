#include "lowering/plan/plan_verifier.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "base/error.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/merged_axes.h"
#include "lowering/plan/plan_loops.h"

namespace sylvite {
namespace {

using Problems = std::vector<std::string>;

const Buffer& buffer_at(const Plan& plan, BufferId id) {
  return plan.buffers.at(static_cast<std::size_t>(id));
}

const Kernel& kernel_of(const Plan& plan, const Launch& launch) {
  return plan.kernels.at(static_cast<std::size_t>(launch.kernel));
}

void check_arguments(const Plan& plan, Problems& problems) {
  for (const Launch& launch : plan.launches) {
    const Graph& body = kernel_of(plan, launch).body;
    std::vector<ValueId> parameters = body.inputs;
    parameters.insert(parameters.end(), body.outputs.begin(), body.outputs.end());
    if (parameters.size() != launch.arguments.size()) {
      problems.push_back(fmt::format("launch '{}' has {} arguments, its kernel {}", launch.name,
                                     launch.arguments.size(), parameters.size()));
      continue;
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Buffer& buffer = buffer_at(plan, launch.arguments[i]);
      const TensorType& type = body.type(parameters[i]);
      if (buffer.type == type || is_merged_of(type, buffer.type)) continue;
      problems.push_back(fmt::format("launch '{}': argument '{}' is {}, its kernel takes {}", launch.name,
                                     buffer.name, buffer.type.to_string(),
                                     body.type(parameters[i]).to_string()));
    }
  }
}

void check_aliases(const Plan& plan, Problems& problems) {
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.alias_of < 0) continue;
    const Buffer& whole = buffer_at(plan, buffer.alias_of);
    if (buffer.alias_offset < 0 || buffer.alias_offset + buffer.type.byte_size() > whole.type.byte_size())
      problems.push_back(fmt::format("alias '{}' reaches beyond '{}'", buffer.name, whole.name));
    if (buffer.alias_offset != 0 && buffer.kind != BufferKind::arena)
      problems.push_back(fmt::format("'{}' is a part of a value outside the arena", buffer.name));
    if (buffer.kind == BufferKind::weight)
      problems.push_back(fmt::format("weight '{}' is an alias", buffer.name));
  }
}

/// Is it a state, or an input over which an output is written?
bool may_be_written_in_place(const Plan& plan, BufferId root) {
  const BufferKind kind = buffer_at(plan, root).kind;
  const auto lies_there = [&](const Port& output) { return root_of(plan, output.buffer) == root; };
  return kind == BufferKind::state ||
         (kind == BufferKind::input && std::ranges::any_of(plan.outputs, lies_there));
}

/// Which bytes of each root have been written.
class Written {
 public:
  explicit Written(const Plan& plan) : plan_(plan), ranges_(plan.buffers.size()) {
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& buffer = plan.buffers[i];
      const bool given = buffer.kind != BufferKind::output && buffer.kind != BufferKind::arena;
      if (given && buffer.alias_of < 0) ranges_[i].emplace(0, buffer.type.byte_size());
    }
  }

  /// False when some of the buffer's bytes were written before, unless they may be written in place.
  bool write(BufferId id, std::int64_t trip) {
    const std::int64_t begin = offset_in_root(plan_, id, trip);
    std::int64_t end = begin + size(id);
    // Between the slices of a window is only what aligns them.
    if (const Window* window = window_of(plan_, id)) end = std::max(end, begin + std::abs(window->stride));
    std::map<std::int64_t, std::int64_t>& ranges = ranges_of(id);
    std::int64_t joined_begin = begin;
    std::int64_t joined_end = end;
    bool is_fresh = true;
    for (auto next = ranges.upper_bound(end); next != ranges.begin();) {
      const auto before = std::prev(next);
      if (before->second < begin) break;
      is_fresh = is_fresh && (before->first >= end || before->second <= begin);
      joined_begin = std::min(joined_begin, before->first);
      joined_end = std::max(joined_end, before->second);
      next = ranges.erase(before);
    }
    ranges[joined_begin] = joined_end;
    return is_fresh || may_be_written_in_place(plan_, root_of(plan_, id));
  }

  [[nodiscard]] bool covers(BufferId id, std::int64_t trip = 0) {
    const std::int64_t begin = offset_in_root(plan_, id, trip);
    const std::map<std::int64_t, std::int64_t>& ranges = ranges_of(id);
    const auto after = ranges.upper_bound(begin);
    return after != ranges.begin() && std::prev(after)->second >= begin + size(id);
  }

 private:
  [[nodiscard]] std::int64_t size(BufferId id) const { return buffer_at(plan_, id).type.byte_size(); }
  [[nodiscard]] std::map<std::int64_t, std::int64_t>& ranges_of(BufferId id) {
    return ranges_[static_cast<std::size_t>(root_of(plan_, id))];
  }

  const Plan& plan_;
  std::vector<std::map<std::int64_t, std::int64_t>> ranges_;  ///< per root buffer: begin -> end, apart
};

/// Later trips write again what moves in turns, or not at all.
void check_order(const Plan& plan, Problems& problems) {
  Written written(plan);
  for_each_launch(plan, [&](std::size_t number, std::int64_t trip) {
    const Launch& launch = plan.launches[number];
    const std::size_t inputs = kernel_of(plan, launch).body.inputs.size();
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      const std::string& name = buffer_at(plan, launch.arguments[i]).name;
      if (i < inputs && !written.covers(launch.arguments[i], trip))
        problems.push_back(fmt::format("launch '{}' reads '{}' before it is written", launch.name, name));
      if (i >= inputs && !written.write(launch.arguments[i], trip) && trip == 0)
        problems.push_back(fmt::format("launch '{}' writes '{}' a second time", launch.name, name));
    }
  });
  for (const Port& output : plan.outputs) {
    if (written.covers(output.buffer)) continue;
    problems.push_back(fmt::format("output '{}' is never written", output.name));
  }
}

/// Loops do not meet, and windows stay within their roots while they move, and are used nowhere else.
void check_loops(const Plan& plan, Problems& problems) {
  std::int32_t begin = 0;
  for (const PlanLoop& loop : plan.loops) {
    const auto end = static_cast<std::int32_t>(plan.launches.size());
    const bool is_apart = loop.beside && (loop.first != begin || &loop == plan.loops.data());
    if (loop.first < begin || loop.end < loop.first || loop.end > end || loop.trips < 1 || is_apart)
      problems.push_back(fmt::format("a loop has launches {} to {} of {}", loop.first, loop.end, end));
    begin = std::max(begin, loop.end);
  }
  if (!problems.empty()) return;
  const std::vector<std::int64_t> counts = launch_counts(plan);
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    for (const BufferId id : plan.launches[i].arguments) {
      const Window* window = window_of(plan, id);
      if (window == nullptr) continue;
      const std::int64_t room =
          buffer_at(plan, root_of(plan, id)).type.byte_size() - buffer_at(plan, id).type.byte_size();
      const std::int64_t places = window->period > 0 ? std::min(window->period, counts[i]) : counts[i];
      for (const std::int64_t trip : {std::int64_t{0}, places - 1}) {
        const std::int64_t offset = offset_in_root(plan, id, trip);
        if (offset >= 0 && offset <= room && offset % 64 == 0) continue;
        problems.push_back(fmt::format("launch '{}': window '{}' is at {} in trip {}", plan.launches[i].name,
                                       buffer_at(plan, id).name, offset, trip));
      }
    }
  }
}

/// Is the buffer the other one, or part of it?
bool lies_in(const Plan& plan, BufferId id, BufferId whole) {
  while (id >= 0 && id != whole) id = buffer_at(plan, id).alias_of;
  return id == whole;
}

/// The last value of a state or input is not read with what replaces it, or later: only the value that was written is.
void check_states(const Plan& plan, Problems& problems) {
  std::map<BufferId, std::vector<BufferId>> written;  // per state or input: in order
  const auto check_read = [&](const std::string& reader, BufferId id) {
    for (const BufferId each : written[root_of(plan, id)]) {
      if (lies_in(plan, id, each)) continue;
      problems.push_back(fmt::format("{} reads '{}', over which '{}' is written", reader,
                                     buffer_at(plan, id).name, buffer_at(plan, each).name));
    }
  };
  for (const Launch& launch : plan.launches) {
    const Kernel& kernel = kernel_of(plan, launch);
    const std::size_t inputs = kernel.body.inputs.size();
    const bool in_place = !kernel.body.nodes().empty() && writes_in_place(kernel.body.nodes().back().op);
    const auto note_writes = [&] {
      for (std::size_t i = inputs; i < launch.arguments.size(); ++i) {
        const BufferId root = root_of(plan, launch.arguments[i]);
        if (buffer_at(plan, root).kind == BufferKind::state ||
            (in_place && may_be_written_in_place(plan, root)))
          written[root].push_back(launch.arguments[i]);
        else if (in_place)
          problems.push_back(fmt::format("launch '{}' writes in place what is no state", launch.name));
      }
    };
    if (!in_place) note_writes();
    for (std::size_t i = 0; i < inputs && i < launch.arguments.size(); ++i)
      check_read(fmt::format("launch '{}'", launch.name), launch.arguments[i]);
    if (in_place) note_writes();
  }
  for (const Port& output : plan.outputs) check_read(fmt::format("output '{}'", output.name), output.buffer);
  for (const Port& state : plan.states)
    if (buffer_at(plan, state.buffer).kind != BufferKind::state ||
        buffer_at(plan, state.buffer).alias_of >= 0)
      problems.push_back(fmt::format("'{}' is no state", state.name));
}

/// What one of several loops that may run at the same time writes, the others do not touch.
void check_loops_beside(const Plan& plan, Problems& problems) {
  for (const std::span<const PlanLoop> group : loop_groups(plan)) {
    std::map<BufferId, std::size_t> writers;  // of roots: which loop
    const auto visit = [&](bool is_written, const std::function<void(std::size_t, BufferId)>& call) {
      for (std::size_t k = 0; group.size() > 1 && k < group.size(); ++k) {
        for (std::int32_t i = group[k].first; i < group[k].end; ++i) {
          const Launch& launch = plan.launches[static_cast<std::size_t>(i)];
          const std::size_t inputs = kernel_of(plan, launch).body.inputs.size();
          for (std::size_t a = is_written ? inputs : 0; a < launch.arguments.size(); ++a)
            call(k, root_of(plan, launch.arguments[a]));
        }
      }
    };
    visit(true, [&](std::size_t k, BufferId root) { writers.emplace(root, k); });
    visit(false, [&](std::size_t k, BufferId root) {
      const auto writer = writers.find(root);
      if (writer == writers.end() || writer->second == k) return;
      problems.push_back(
          fmt::format("a loop touches '{}', which a loop beside it writes", buffer_at(plan, root).name));
    });
  }
}

void check_places(const Plan& plan, Problems& problems) {
  const std::vector<LiveRange> ranges = live_ranges(plan);
  std::int64_t state_end = 0;
  for (const Port& state : plan.states) {
    const std::int64_t offset = buffer_at(plan, state.buffer).offset;
    if (offset < state_end || offset % 64 != 0 || offset + state.type.byte_size() > plan.state_bytes)
      problems.push_back(fmt::format("state '{}' lies at {} of {}", state.name, offset, plan.state_bytes));
    state_end = offset + state.type.byte_size();
  }
  std::vector<std::size_t> roots;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.kind != BufferKind::arena || buffer.alias_of >= 0) continue;
    const std::int64_t end = buffer.offset + buffer.type.byte_size();
    if (buffer.offset < 0 || buffer.offset % 64 != 0 || end > plan.arena_bytes) {
      problems.push_back(
          fmt::format("'{}' lies at {} in an arena of {}", buffer.name, buffer.offset, plan.arena_bytes));
    }
    for (std::size_t j : roots) {
      const Buffer& other = plan.buffers[j];
      const bool apart = end <= other.offset || other.offset + other.type.byte_size() <= buffer.offset;
      if (apart || !ranges[i].overlaps(ranges[j])) continue;
      problems.push_back(
          fmt::format("'{}' and '{}' live at the same time in the same place", other.name, buffer.name));
    }
    roots.push_back(i);
  }
}

struct Rule {
  std::string_view name;
  void (*check)(const Plan&, Problems&);
};

constexpr std::array<Rule, 7> verifier_rules = {{
    {"arguments", check_arguments},
    {"aliases", check_aliases},
    {"loops", check_loops},
    {"loops beside each other", check_loops_beside},
    {"order", check_order},
    {"states", check_states},
    {"places", check_places},
}};

}  // namespace

void verify(const Plan& plan) {
  std::string message;
  for (const Rule& rule : verifier_rules) {
    Problems problems;
    rule.check(plan, problems);
    for (const std::string& problem : problems) message += fmt::format("\n  {}: {}", rule.name, problem);
    if (rule.check == check_loops && !problems.empty()) break;
  }
  if (!message.empty()) throw InternalError("plan '{}' is not well formed:{}", plan.name, message);
}

}  // namespace sylvite
