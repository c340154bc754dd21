#pragma once
// Vectors of bf16 computed as their even and odd lanes: a directive that is not Halide's own.

#include <Halide.h>

#include <memory>
#include <string>
#include <string_view>

#include "schedules/schedule.h"

namespace sylvite {

/// stage.even_odd_lanes(): vectors of 2 x 16 lanes of the whole kernel are computed with the even lanes first
/// and then the odd ones. The even elements of 32 stored bf16 are then one shift of the loaded words, the odd
/// ones one mask, where lanes in their order take two widenings and two shifts. Results are put in order when
/// they are rounded to bf16, or stored as f32 outside of the kernel; f32 that it loads from elsewhere is put
/// into that order. Where anything between does not work lane by lane, nothing changes.
/// Pros: half the instructions, or less, for convolutions that multiply each element a few times.
/// Cons: one more instruction for each rounded vector.
inline constexpr std::string_view even_odd_lanes_directive = "even_odd_lanes";
inline constexpr int even_odd_lanes = 32;  ///< of such a vector

/// For the row of own_directives.h. REQUIRES the pass to run ahead of RoundByInstruction.
std::unique_ptr<Halide::Internal::IRMutator> even_odd_lanes_pass(const Algorithm& algorithm,
                                                                 const Decision& decision,
                                                                 const std::string& target);

}  // namespace sylvite
