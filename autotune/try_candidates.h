#pragma once
// Candidates that somebody wrote, compiled, checked and timed as the tuner does it with its own.

#include <vector>

#include "autotune/evaluator.h"
#include "autotune/trial.h"

namespace sylvite {

struct TryOptions {
  int samples = 15;              ///< of each candidate, taken in turns
  double seconds = 10;           ///< timing stops after so long, with fewer samples
  double compile_timeout = 120;  ///< seconds for each candidate
};

/// What became of each, in order; nothing is stored. Those that compile are checked against the reference schedule and
/// timed in turns, so that sample i of all was taken at about the same time. Throws IoError when the machine failed, and
/// CompileError when the reference schedule did: neither says anything of a candidate.
[[nodiscard]] std::vector<Trial> try_candidates(const Kernel& kernel, const Machine& machine,
                                                const std::vector<Candidate>& candidates,
                                                const TryOptions& options, Evaluator& evaluator);

}  // namespace sylvite
