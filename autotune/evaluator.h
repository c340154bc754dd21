#pragma once
// What the tuner needs from the world: candidates to try, compiling, measuring, and the time. Real ones
// below; tests give their own.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "autotune/tuner.h"
#include "autotune/worker_pool.h"
#include "schedules/space.h"

namespace sylvite {

struct Evaluator {
  /// The schedule spaces that take a kernel, best first.
  std::function<std::vector<BoundSpace>(const Kernel&, const Machine&)> spaces;
  std::function<Candidate(const Kernel&)> reference;  ///< the oracle's schedule
  /// Begins to compile and returns at once. REQUIRES the last batch finished.
  std::function<void(std::vector<CompileJob>)> start_compiling;
  /// Results of the batch, in order; nothing for jobs that did not finish within `timeout` seconds.
  std::function<std::vector<std::optional<CompileResult>>(double timeout)> finish_compiling;
  std::function<std::vector<Measurement>(const MeasureJob&)> measure;
  /// Why nothing can be measured any more; "" while all is well.
  std::function<std::string()> refusal = [] { return std::string(); };
  /// Whether somebody wants the search to end now: what is compiling is given up, and nothing more is begun.
  std::function<bool()> is_interrupted = [] { return false; };
  std::function<double()> now;  ///< seconds, never backwards
};

/// A measurement as a trial; an impossible timing or too large an error is a verdict whatever the child said.
[[nodiscard]] Trial make_trial(const Kernel& kernel, const CompiledCandidate& compiled,
                               const Measurement& measurement);

/// The machine's space table, worker processes and the steady clock.
[[nodiscard]] Evaluator make_evaluator(const std::shared_ptr<WorkerPool>& pool, const Machine& machine);
/// The same with a pool of its own, as the options say.
[[nodiscard]] Evaluator make_evaluator(const TuneOptions& options, const Machine& machine);

}  // namespace sylvite
