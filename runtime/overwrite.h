#pragma once
// Results that are written where an input lies, as the caller's values change in place.

#include <cstddef>
#include <vector>

#include "lowering/plan/plan.h"
#include "runtime/bindings.h"
#include "schedules/candidate.h"

namespace sylvite {

/// A graph's result and the input whose memory it takes.
struct Overwrite {
  std::size_t output = 0;
  std::size_t input = 0;
  bool operator==(const Overwrite&) const = default;
};

/// May results lie there?
[[nodiscard]] bool is_aligned(const void* address);

/// Is an element of each result written once? A loop that shifts its last step inwards computes elements again.
[[nodiscard]] bool writes_once(const Kernel& kernel, const Candidate& candidate);

/// May the result be written over the input? Nothing reads the input behind the launch that writes the result, and that launch
/// itself reads it only if it writes once, for this result and those that it writes before. `once`: per kernel of the plan.
/// REQUIRES as many bytes.
[[nodiscard]] bool may_overwrite(const Plan& plan, const Bindings& bindings, const std::vector<bool>& once,
                                 const Overwrite& places);

}  // namespace sylvite
