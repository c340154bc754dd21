#pragma once
// Which loops of a plan may run at the same time, as both directions of a recurrent layer may.

#include <cstddef>
#include <vector>

#include "lowering/plan/plan.h"

namespace sylvite {

/// Launches in another order that computes the same, and the plan's loops there.
struct LoopOrder {
  std::vector<std::size_t> launches;  ///< by their numbers so far
  std::vector<PlanLoop>
      loops;  ///< with `beside` where a loop now follows another that it has nothing to do with
};

/// Brings loops together: what stands between two that have nothing to do with each other moves ahead of both, or behind
/// them. `inputs` has for each launch how many of its arguments it reads.
[[nodiscard]] LoopOrder order_loops(const Plan& plan, const std::vector<std::size_t>& inputs);

}  // namespace sylvite
