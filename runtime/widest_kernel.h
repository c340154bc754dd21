#pragma once
// Open kernels for more sizes than the classes of their two cases, where these should be as fast. On a device they stay as they are.

#include "lowering/plan/kernel.h"
#include "schedules/machine.h"

namespace sylvite {

/// The open kernel of `first` and `second` from the fewest lines and pixels on that should be as fast as `open`, which is that of
/// both, at the sizes of `first`.
[[nodiscard]] Kernel from_fewest(const Kernel& first, const Kernel& second, Kernel open,
                                 const Machine& machine);

/// `open` for all extents from two on where few and many have the same schedule: what is neither tiled nor a line of vectors.
[[nodiscard]] Kernel for_few_and_many(Kernel open, const Machine& machine);

}  // namespace sylvite
