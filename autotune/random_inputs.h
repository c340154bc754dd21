#pragma once
// The inputs that candidates are checked and timed with.

#include <vector>

#include "lowering/plan/kernel.h"

namespace sylvite {

/// One tensor per body input, the same for every call: floats uniform in [-1, 1), booleans random, integers
/// small, not negative, and within bounds where the kernel uses them as indices. Weights have their logical
/// dims (a candidate may want them packed), other inputs their dims as stored.
[[nodiscard]] std::vector<Tensor> random_inputs(const Kernel& kernel);

}  // namespace sylvite
