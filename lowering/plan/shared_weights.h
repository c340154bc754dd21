#pragma once
// Which arguments of launches share a weight. Tables that a model makes of its sizes are equal at some of them by chance; there
// lowering gives several launches one weight.

#include "lowering/plan/plan.h"

namespace sylvite {

/// The plan with a weight and a buffer of its own for each argument that is a weight. Buffers are numbered in the order in which
/// launches use them, and weights likewise: whether tables are equal changes nothing.
[[nodiscard]] Plan with_weights_apart(Plan plan);

/// The plan with one weight, and one buffer of each type, for all arguments that are the same tensor.
[[nodiscard]] Plan with_weights_shared(Plan plan);

}  // namespace sylvite
