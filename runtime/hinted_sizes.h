#pragma once
// Families that begin with programs for the sizes to be fast at.

#include <functional>
#include <stop_token>

#include "runtime/family.h"

namespace sylvite {

/// Every combination of sizes to be fast at, the first of each symbol first. `visit` gets the model with its share of
/// what is left of the time to tune, and returns what it used, in seconds. Throws UsageError for more combinations
/// than compile.sizes_kept.
void at_hinted_sizes(const OpenModel& model,
                     const std::function<double(const OpenModel&, const Sizes&)>& visit);

/// A program for every combination of sizes to be fast at, and kernels for others; `stop` as for build_program.
[[nodiscard]] Family build_family(const OpenModel& model, const Chooser& choose,
                                  const std::stop_token& stop = {});
/// The same, but kernels for others are compiled beside runs.
[[nodiscard]] Family start_family(const OpenModel& model, const Chooser& choose,
                                  const std::stop_token& stop = {});

}  // namespace sylvite
