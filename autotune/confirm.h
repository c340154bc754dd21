#pragma once
// Whether winners hold inside the whole model: two programs that differ in some kernels, run in turns.

#include <functional>
#include <utility>
#include <vector>

#include "autotune/race.h"

namespace sylvite {

/// Times of whole runs of a program, in microseconds.
struct ModelTimes {
  std::vector<std::vector<double>> kernel_us;  ///< [kernel][run], over all launches of the kernel
  std::vector<double> run_us;                  ///< [run], the sum over all kernels
};

/// Runs a program once: microseconds per kernel, over all its launches.
using RunProgram = std::function<std::vector<double>()>;

/// Runs two programs in turns until `now` (seconds) reaches `deadline`; the one that begins alternates.
/// Nothing is recorded of a first round, which warms up. Fewer than `least_confirming_runs` runs when a round
/// takes too long.
[[nodiscard]] std::pair<ModelTimes, ModelTimes> race_programs(const RunProgram& incumbent,
                                                              const RunProgram& challenger, double deadline,
                                                              const std::function<double()>& now);
/// With fewer runs of each, nothing is known.
inline constexpr std::size_t least_confirming_runs = 5;

/// Per kernel: whether the challenger's candidate is faster in the model, too. It won a race of its own
/// already, so here it only must not be slower.
[[nodiscard]] std::vector<bool> holds_in_model(const ModelTimes& incumbent, const ModelTimes& challenger);

}  // namespace sylvite
