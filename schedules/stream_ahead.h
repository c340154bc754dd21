#pragma once
// Prefetching weights ahead of their use: the one directive that is not Halide's own.

#include <Halide.h>

#include <string_view>

#include "schedules/schedule.h"

namespace sylvite {

/// stage.stream_ahead(loop, weight, distance): every iteration of `loop` goes through the same slab of
/// `weight` (an input, dense in memory) in its innermost loop. Prefetches of the slab that lies `distance`
/// slabs further in memory are spread evenly over all these steps, so that weights come from main memory
/// while the core multiplies and not in a burst where a new slab begins. A loop of one iteration counts as
/// one. Prefetches do not fault: past the end of the weight they are wasted, no more.
inline constexpr std::string_view stream_ahead_directive = "stream_ahead";

/// Adds a lowering pass for each such decision. REQUIRES schedule.apply(algorithm) done.
void add_stream_ahead(const Schedule& schedule, const Algorithm& algorithm, Halide::Pipeline& pipeline);

}  // namespace sylvite
