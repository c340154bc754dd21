#pragma once
// Runs a Plan with the reference interpreter: the oracle between a graph and its compiled program.

#include <vector>

#include "lowering/plan/plan.h"

namespace sylvite {

/// Each launch's kernel body through the reference interpreter, in launch order, with every value stored
/// where and as the plan says: layouts, aliases and arena offsets are put to the test. Results per plan
/// output. Throws InputError when there are more or fewer inputs than the plan takes.
[[nodiscard]] std::vector<Tensor> interpret_plan(const Plan& plan, const std::vector<Tensor>& inputs);

/// The same from these states on, one per state of the plan, which the run replaces. Without them all are zero.
[[nodiscard]] std::vector<Tensor> interpret_plan(const Plan& plan, const std::vector<Tensor>& inputs,
                                                 std::vector<Tensor>& states);

}  // namespace sylvite
