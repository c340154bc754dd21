#pragma once
// Iterations that store nothing compute nothing: a directive that is not Halide's own.

#include <Halide.h>

#include <memory>
#include <string>
#include <string_view>

#include "schedules/schedule.h"

namespace sylvite {

/// fold.update(0).skip_idle(loop): of an update whose domain has a condition (RDom::where) that an iteration of the loop
/// decides. Halide asks it where the update stores, behind all that the iteration computes for it; here it is asked first.
/// Nothing changes where the iteration stores into what outlives it outside of the condition.
/// Pros: attention of a token over a cache of 4,096 of which 64 are filled takes a fortieth of the time.
/// Cons: none known.
inline constexpr std::string_view skip_idle_directive = "skip_idle";

/// For the row of own_directives.h.
std::unique_ptr<Halide::Internal::IRMutator> skip_idle_pass(const Algorithm& algorithm,
                                                            const Decision& decision,
                                                            const std::string& target);

}  // namespace sylvite
