#include "lowering/plan/plan_loops.h"

#include <map>
#include <utility>

#include "base/error.h"
#include "lowering/plan/memory_plan.h"

namespace sylvite {
namespace {

constexpr std::int64_t most_launches = 30'000;

/// Buffers that do not move, for each place of a window.
class FixedPlaces {
 public:
  explicit FixedPlaces(Plan& plan) : plan_(plan) {}

  BufferId at(BufferId id, std::int64_t trip) {
    if (window_of(plan_, id) == nullptr) return id;
    const std::int64_t offset = offset_in_root(plan_, id, trip);
    const auto [entry, is_new] = fixed_.try_emplace({id, offset}, -1);
    if (is_new) {
      Buffer place = plan_.buffers[static_cast<std::size_t>(id)];
      place.alias_of = root_of(plan_, id);
      place.alias_offset = offset;
      place.window.reset();
      plan_.buffers.push_back(std::move(place));
      entry->second = static_cast<BufferId>(plan_.buffers.size() - 1);
    }
    return entry->second;
  }

 private:
  Plan& plan_;
  std::map<std::pair<BufferId, std::int64_t>, BufferId> fixed_;
};

}  // namespace

std::vector<std::span<const PlanLoop>> loop_groups(const Plan& plan) {
  std::vector<std::span<const PlanLoop>> groups;
  for (std::size_t first = 0; first < plan.loops.size();) {
    std::size_t end = first + 1;
    while (end < plan.loops.size() && plan.loops[end].beside) ++end;
    groups.emplace_back(plan.loops.data() + first, end - first);
    first = end;
  }
  return groups;
}

std::vector<std::int64_t> launch_counts(const Plan& plan) {
  std::vector<std::int64_t> counts(plan.launches.size(), 1);
  for (const PlanLoop& loop : plan.loops)
    for (std::int32_t i = loop.first; i < loop.end; ++i) counts[static_cast<std::size_t>(i)] = loop.trips;
  return counts;
}

std::vector<std::int64_t> kernel_counts(const Plan& plan) {
  const std::vector<std::int64_t> launches = launch_counts(plan);
  std::vector<std::int64_t> counts(plan.kernels.size(), 0);
  for (std::size_t i = 0; i < launches.size(); ++i)
    counts.at(static_cast<std::size_t>(plan.launches[i].kernel)) += launches[i];
  return counts;
}

void for_each_launch(const Plan& plan, const std::function<void(std::size_t, std::int64_t)>& visit) {
  std::size_t next = 0;
  for (const PlanLoop& loop : plan.loops) {
    const auto end = static_cast<std::size_t>(loop.end);
    for (; next < static_cast<std::size_t>(loop.first); ++next) visit(next, 0);
    for (std::int64_t trip = 0; trip < loop.trips; ++trip)
      for (std::size_t i = next; i < end; ++i) visit(i, trip);
    next = end;
  }
  for (; next < plan.launches.size(); ++next) visit(next, 0);
}

void check_unrolls(const Plan& plan) {
  if (plan.loops.empty()) return;
  std::int64_t count = 0;
  for (const std::int64_t launches : launch_counts(plan)) count += launches;
  if (count > most_launches)
    throw UnsupportedError("the loops of '{}' make {} launches; {} are supported here", plan.name, count,
                           most_launches);
}

Plan unrolled(const Plan& plan) {
  if (plan.loops.empty()) return plan;
  check_unrolls(plan);
  Plan result = plan;
  result.loops.clear();
  result.launches.clear();
  FixedPlaces places(result);
  for_each_launch(plan, [&](std::size_t number, std::int64_t trip) {
    Launch launch = plan.launches[number];
    for (BufferId& argument : launch.arguments) argument = places.at(argument, trip);
    result.launches.push_back(std::move(launch));
  });
  return result;
}

}  // namespace sylvite
