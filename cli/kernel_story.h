#pragma once
// What is known of each kernel of a plan: where it is launched, what it runs, and why that.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autotune/standing.h"
#include "runtime/session.h"

namespace sylvite {

struct KernelStory {
  std::int64_t launches = 0;
  std::string first_launch;
  std::string origin;  ///< of the stored winner (docs/database.md), or where else the choice came from
  Standing standing;   ///< among the trials that are stored
};

/// One per kernel of the plan, in order. The database is looked into as it is after choosing.
[[nodiscard]] std::vector<KernelStory> tell_kernels(const Imported& imported,
                                                    const std::vector<Choice>& choices);

/// "stored winner, origin search: 24 others were tried, ...".
[[nodiscard]] std::string why_text(const Choice& choice, const KernelStory& story);

/// "+2.1%" of a ratio to the chosen candidate's time; "same" for 1, "-" for 0, of which nothing is known.
[[nodiscard]] std::string excess_text(double ratio);

/// One document per kernel, by id: what `work_json` says, and the story.
[[nodiscard]] nlohmann::json kernels_json(const Imported& imported, const std::vector<Choice>& choices,
                                          const std::vector<KernelStory>& stories);

}  // namespace sylvite
