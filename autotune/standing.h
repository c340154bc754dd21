#pragma once
// How the candidate that was chosen stands among those that were tried: why it is the one.

#include <map>
#include <string>
#include <vector>

#include "autotune/database.h"

namespace sylvite {

struct Standing {
  int tried = 0;   ///< candidates of the kernel with a trial
  int failed = 0;  ///< of them, those that did not compile, crashed, were wrong or had impossible times
  /// Time of the fastest other candidate over that of the chosen one; 0 when nothing is known of one of them.
  double next_ratio = 0;
  /// The same of the default candidate: 1 when it is the chosen one, 0 when nothing is known of one of them.
  double default_ratio = 0;
};

/// Times in one race count before medians of trials, which were not taken at the same time; those of a race inside a model
/// before those of the kernel alone. `chosen_us` is the time with which it was chosen, if one is known: where its trial took
/// longer, the machine was busy then.
[[nodiscard]] Standing standing_of(const Candidate& chosen, double chosen_us, const Candidate& fallback,
                                   const std::vector<Trial>& trials, const std::vector<Race>& races);

/// "24 others were tried, 2 failed; the next takes 1.020 of its time; the default schedule takes 1.130"; "" when nothing was
/// tried.
[[nodiscard]] std::string describe(const Standing& standing);

}  // namespace sylvite
