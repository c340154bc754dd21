#include "lowering/plan/plan_verifier.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "lowering/plan/memory_plan.h"

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
      if (buffer.type == body.type(parameters[i])) continue;
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

/// Which bytes of each root have been written.
class Written {
 public:
  explicit Written(const Plan& plan) : plan_(plan), ranges_(plan.buffers.size()) {
    for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
      const Buffer& buffer = plan.buffers[i];
      const bool given = buffer.kind == BufferKind::input || buffer.kind == BufferKind::weight;
      if (given && buffer.alias_of < 0) ranges_[i].emplace_back(0, buffer.type.byte_size());
    }
  }

  /// False when some of the buffer's bytes were written before.
  bool write(BufferId id) {
    const std::int64_t begin = offset_in_root(plan_, id);
    const std::int64_t end = begin + size(id);
    auto& ranges = ranges_[static_cast<std::size_t>(root_of(plan_, id))];
    const bool fresh = std::all_of(ranges.begin(), ranges.end(), [&](const auto& range) {
      return end <= range.first || range.second <= begin;
    });
    ranges.emplace_back(begin, end);
    return fresh;
  }

  [[nodiscard]] bool covers(BufferId id) {
    auto& ranges = ranges_[static_cast<std::size_t>(root_of(plan_, id))];
    std::sort(ranges.begin(), ranges.end());
    std::int64_t next = offset_in_root(plan_, id);
    const std::int64_t end = next + size(id);
    for (const auto& [from, to] : ranges)
      if (from <= next) next = std::max(next, to);
    return !ranges.empty() && next >= end;
  }

 private:
  [[nodiscard]] std::int64_t size(BufferId id) const { return buffer_at(plan_, id).type.byte_size(); }

  const Plan& plan_;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> ranges_;  ///< per root buffer
};

void check_order(const Plan& plan, Problems& problems) {
  Written written(plan);
  for (const Launch& launch : plan.launches) {
    const std::size_t inputs = kernel_of(plan, launch).body.inputs.size();
    for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
      const std::string& name = buffer_at(plan, launch.arguments[i]).name;
      if (i < inputs && !written.covers(launch.arguments[i]))
        problems.push_back(fmt::format("launch '{}' reads '{}' before it is written", launch.name, name));
      if (i >= inputs && !written.write(launch.arguments[i]))
        problems.push_back(fmt::format("launch '{}' writes '{}' a second time", launch.name, name));
    }
  }
  for (const Port& output : plan.outputs) {
    if (written.covers(output.buffer)) continue;
    problems.push_back(fmt::format("output '{}' is never written", output.name));
  }
}

void check_places(const Plan& plan, Problems& problems) {
  const std::vector<LiveRange> ranges = live_ranges(plan);
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

constexpr std::array<Rule, 4> rules = {{
    {"arguments", check_arguments},
    {"aliases", check_aliases},
    {"order", check_order},
    {"places", check_places},
}};

}  // namespace

void verify(const Plan& plan) {
  std::string message;
  for (const Rule& rule : rules) {
    Problems problems;
    rule.check(plan, problems);
    for (const std::string& problem : problems) message += fmt::format("\n  {}: {}", rule.name, problem);
  }
  if (!message.empty()) throw InternalError("plan '{}' is not well formed:{}", plan.name, message);
}

}  // namespace sylvite
