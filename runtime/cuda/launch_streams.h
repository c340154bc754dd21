#pragma once
// Which of a program's launches may run beside each other, and on which of several streams each goes.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lowering/plan/plan.h"
#include "runtime/bindings.h"

namespace sylvite {

/// Bytes that a launch reads or writes. Ranges of different regions never overlap.
struct TouchedBytes {
  std::int64_t region = 0;
  std::int64_t begin = 0, end = 0;
  bool is_written = false;
};
using Touches = std::vector<TouchedBytes>;

/// Per launch of the plan, by its arguments; weights, which nobody writes, are left out.
[[nodiscard]] std::vector<Touches> touches_of(const Plan& plan, const Bindings& bindings);

/// What a launch of the plan touches beside its arguments: scratch memory, and workspaces of libraries.
[[nodiscard]] Touches touches_beside_arguments(const std::vector<cuda::NotedLaunch>& noted);

struct StreamPlace {
  std::size_t stream = 0;
  std::vector<std::size_t> waits;  ///< launches of other streams that must have ended before it begins
};

/// A place for each launch, so that what touches the same bytes keeps the order of the list, unless it is
/// only read. Memory that values share after one another therefore orders launches, too.
[[nodiscard]] std::vector<StreamPlace> spread(const std::vector<Touches>& launches, std::size_t streams);

}  // namespace sylvite
