#pragma once
// The launches of a run in their order; loops that have nothing to do with each other at the same time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lowering/plan/plan.h"
#include "runtime/threads.h"
#include "schedules/candidate.h"

namespace sylvite {

class LaunchOrder {
 public:
  using Launch = std::function<void(std::size_t number, std::int64_t trip)>;

  /// `candidates` are the plan's kernels'. The plan must outlive it.
  LaunchOrder(const Plan& plan, const std::vector<Candidate>& candidates, int threads);

  /// Calls `launch` for every launch; the trip is 0 outside of loops. From several threads where loops run at the same
  /// time, but never for a launch that another thread is in. Throws what `launch` throws.
  void run(RunContext& context, const Launch& launch) const;

 private:
  /// Loops of a plan that stand beside each other.
  struct Group {
    std::span<const PlanLoop> loops;
    bool at_once = false;  ///< each is one thread's
  };

  std::size_t launches_;
  std::vector<Group> groups_;
};

}  // namespace sylvite
