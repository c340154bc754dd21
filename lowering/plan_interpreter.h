#pragma once
// Runs a Plan with the reference interpreter: the oracle between a graph and its compiled program.

#include <vector>

#include "lowering/plan.h"

namespace sylvite {

/// Each launch's kernel body over dense logical tensors, in launch order; results per plan output. Layouts
/// and arena offsets play no part (see verify for those). Throws InputError as interpret does.
[[nodiscard]] std::vector<Tensor> interpret_plan(const Plan& plan, const std::vector<Tensor>& inputs);

}  // namespace sylvite
