#pragma once
// The epilogue of a block of AMX tiles beside the products of the next one: a directive that is not Halide's
// own.

#include <Halide.h>

#include <memory>
#include <string>
#include <string_view>

#include "schedules/schedule.h"

namespace sylvite {

/// fold.overlap_epilogue(): of a Func whose update is amx_tiles() and which is computed block by block and
/// read where a block is done. What reads a block then runs in shares, one behind each step of the next
/// block's products, and for the last block behind the loops: the tile unit, which works on its own, does not
/// wait (nor go to sleep) while vectors are added, rounded and stored. Blocks are those of the loops around,
/// up to the task or to anything else that a loop holds. The reader must not write what products read. Where
/// loops are not of this form, as with one block, nothing changes.
/// Pros: a matmul of 128x3072x768 with GELU takes 590 us instead of 649.
/// Cons: with fewer than 8 steps in a fold the shares' own loops cost more than they hide; with more than 100
/// nothing is gained; results that leave the caches (logits) take longer.
inline constexpr std::string_view overlap_epilogue_directive = "overlap_epilogue";

/// For the row of own_directives.h. REQUIRES the passes of amx_tiles.h and stream_ahead.h to run before.
std::unique_ptr<Halide::Internal::IRMutator> overlap_epilogue_pass(const Algorithm& algorithm,
                                                                   const Decision& decision,
                                                                   const std::string& target);

}  // namespace sylvite
