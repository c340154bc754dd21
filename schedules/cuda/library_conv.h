#pragma once
// Convolutions as vendor libraries know them: images with their channels innermost, a filter, and an epilogue
// of a bias, a residual and ReLU.

#include "lowering/algorithms/problems.h"
#include "lowering/plan/kernel.h"
#include "schedules/cuda/library_call.h"

namespace sylvite {

[[nodiscard]] Reading<LibraryConvProblem> read_library_conv(const Kernel& kernel);

}  // namespace sylvite
