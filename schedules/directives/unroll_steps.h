#pragma once
// Steps of AMX products as straight code: a directive that is not Halide's own.

#include <Halide.h>

#include <memory>
#include <string>
#include <string_view>

#include "schedules/schedule.h"

namespace sylvite {

/// fold.unroll_steps(copies): of a Func whose update is amx_tiles(). The loops around a step of its products
/// are unrolled, the innermost first, as long as they make no more than `copies` of it; what stands in a step
/// beside the products, prefetches and shares of an epilogue, then has constant places, and the tile unit
/// waits for no arithmetic of indices. (unroll() of the loops would come before amx_tiles(), which reads
/// them.)
/// Pros: 1x1 convolutions of 14x14 and 28x28 pixels take 71 to 76 us instead of 81 to 86.
/// Cons: larger code; folds of more than 36 steps, and matmuls, whose one loop is as short, gain nothing.
inline constexpr std::string_view unroll_steps_directive = "unroll_steps";

/// For the row of own_directives.h. REQUIRES the passes of amx_tiles.h, stream_ahead.h and overlap_epilogue.h to
/// run before.
void check_unroll_steps(const Algorithm& algorithm, const Decision& decision);
std::unique_ptr<Halide::Internal::IRMutator> unroll_steps_pass(const Algorithm& algorithm,
                                                               const Decision& decision,
                                                               const std::string& target);

}  // namespace sylvite
