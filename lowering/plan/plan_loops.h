#pragma once
// Loops of a plan, for what counts or runs launches.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lowering/plan/plan.h"

namespace sylvite {

/// The plan's loops in order: those that may run at the same time together.
[[nodiscard]] std::vector<std::span<const PlanLoop>> loop_groups(const Plan& plan);

/// Per launch: how often a run makes it.
[[nodiscard]] std::vector<std::int64_t> launch_counts(const Plan& plan);
/// Per kernel: how often a run launches it.
[[nodiscard]] std::vector<std::int64_t> kernel_counts(const Plan& plan);

/// Calls visit(launch, trip) in the order of a run; the trip is 0 outside loops.
void for_each_launch(const Plan& plan, const std::function<void(std::size_t, std::int64_t)>& visit);

/// Throws UnsupportedError where a run makes more than 30,000 launches, of which `unrolled` makes no plan.
void check_unrolls(const Plan& plan);
/// The same plan without loops: each trip has launches of its own, and no buffer moves. For what needs fixed
/// addresses. Throws as check_unrolls does.
[[nodiscard]] Plan unrolled(const Plan& plan);

}  // namespace sylvite
