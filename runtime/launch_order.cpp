#include "runtime/launch_order.h"

#include <algorithm>
#include <exception>

#include "lowering/plan/plan_loops.h"

namespace sylvite {
namespace {

bool is_parallel(const Candidate& candidate) {
  return std::ranges::any_of(candidate.schedule.decisions,
                             [](const Decision& decision) { return decision.directive == "parallel"; });
}

void run_loop(const PlanLoop& loop, const LaunchOrder::Launch& launch) {
  for (std::int64_t trip = 0; trip < loop.trips; ++trip)
    for (std::int32_t i = loop.first; i < loop.end; ++i) launch(static_cast<std::size_t>(i), trip);
}

/// What several threads do, and what went wrong.
struct LaunchWork {
  std::span<const PlanLoop> loops;
  const LaunchOrder::Launch& launch;
  std::vector<std::exception_ptr> failures;
};

int do_task(void* /*context*/, int number, std::uint8_t* given) {
  auto& [loops, launch, failures] = *reinterpret_cast<LaunchWork*>(given);
  const auto i = static_cast<std::size_t>(number);
  try {
    run_loop(loops[i], launch);
    return 0;
  } catch (...) {
    failures[i] = std::current_exception();
    return 1;
  }
}

void run_at_once(RunContext& context, std::span<const PlanLoop> loops, const LaunchOrder::Launch& launch) {
  LaunchWork work{loops, launch, std::vector<std::exception_ptr>(loops.size())};
  (void)parallel_for(&context, do_task, 0, static_cast<int>(loops.size()),
                     reinterpret_cast<std::uint8_t*>(&work));
  for (const std::exception_ptr& failure : work.failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

/// Loops run at once where each thread has one, or where their kernels use no more than one thread: then no step waits for
/// another thread.
LaunchOrder::LaunchOrder(const Plan& plan, const std::vector<Candidate>& candidates, int threads)
    : launches_(plan.launches.size()) {
  for (const std::span<const PlanLoop> loops : loop_groups(plan)) {
    bool shares_work = false;
    for (std::int32_t i = loops.front().first; i < loops.back().end; ++i) {
      const auto kernel = static_cast<std::size_t>(plan.launches[static_cast<std::size_t>(i)].kernel);
      shares_work = shares_work || is_parallel(candidates[kernel]);
    }
    const bool is_enough = loops.size() >= static_cast<std::size_t>(threads) || !shares_work;
    groups_.push_back({loops, loops.size() > 1 && threads > 1 && is_enough});
  }
}

void LaunchOrder::run(RunContext& context, const Launch& launch) const {
  std::size_t next = 0;
  const auto launch_until = [&](std::size_t end) {
    for (; next < end; ++next) launch(next, 0);
  };
  for (const Group& group : groups_) {
    launch_until(static_cast<std::size_t>(group.loops.front().first));
    if (group.at_once)
      run_at_once(context, group.loops, launch);
    else
      for (const PlanLoop& loop : group.loops) run_loop(loop, launch);
    next = static_cast<std::size_t>(group.loops.back().end);
  }
  launch_until(launches_);
}

}  // namespace sylvite
