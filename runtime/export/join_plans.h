#pragma once
// Plans of one model at several sizes as one plan for all of them.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lowering/plan/plan.h"
#include "schedules/machine.h"

namespace sylvite {

/// Throws UnsupportedError, which says what differs, unless the plans have the same launches of kernels that differ in
/// extents alone, and the same weights, or tables of one rule, or the first bytes of those of `greatest`, whose buffers are the
/// largest.
void check_alike(const std::vector<std::shared_ptr<const Plan>>& plans, const Plan& greatest);

/// What classes_text says of a plan's kernels: alike plans where it is equal may have one program.
[[nodiscard]] std::string kernel_classes(const Plan& plan);

/// Kernels that were opened, by skeleton: programs of one library share them.
using OpenKernels = std::unordered_map<std::string, std::vector<Kernel>>;

/// Plans that are alike, each with the same kernels, weights but for tables of its sizes, and places of buffers: those of
/// `greatest`. Kernels are open where
/// extents differ; they are for the sizes of `group` (indices into `plans`) and made for those of group[0]. Beyond the group
/// a plan is right but for the sizes that its kernels may have. Throws UnsupportedError that names a kernel which cannot be
/// open.
[[nodiscard]] std::vector<Plan> join_plans(const std::vector<std::shared_ptr<const Plan>>& plans,
                                           const Plan& greatest, const std::vector<std::size_t>& group,
                                           OpenKernels& made, const Machine& machine);

}  // namespace sylvite
