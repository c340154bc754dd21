#pragma once
// The tuner: chooses a candidate for every kernel of a plan. In default mode by heuristic or from the database; in
// max-autotune by measuring, within a wall-clock budget.

#include <functional>
#include <string>
#include <vector>

#include "autotune/database.h"
#include "lowering/plan.h"
#include "schedules/candidate.h"

namespace sylvite {

struct TuneOptions {
  double budget_seconds = 60;   ///< over all kernels
  int compile_jobs = 2;         ///< compile workers at a time
  double compile_timeout = 30;  ///< seconds for one candidate
  double run_timeout = 10;      ///< seconds for one measurement
  std::string worker_command;   ///< the `sylvite` executable, started as `sylvite worker`
  std::string precision = "f32";
};

/// What is going on, for progress bars and JSONL. Called from the tuning thread.
struct TuneProgress {
  std::string kernel;
  int trials = 0;
  int compiled = 0;
  int rejected = 0;
  double elapsed_seconds = 0;
  double budget_seconds = 0;
  double speedup_so_far = 1;
};
using ProgressCallback = std::function<void(const TuneProgress&)>;

/// How many times a kernel runs in the program, and what it costs now; decides its share of the budget.
struct TuneTask {
  const Kernel* kernel = nullptr;
  int launches = 1;
};

/// Tunes tasks within the budget; every trial goes to the database as it happens, winners at the end of each kernel.
/// Resumes: candidates with a stored trial under the same key are not measured again.
/// Returns one winner per task, in order; the heuristic candidate where nothing better was verified.
[[nodiscard]] std::vector<Candidate> tune(const std::vector<TuneTask>& tasks, const Machine& machine,
                                          Database& database, const TuneOptions& options,
                                          const ProgressCallback& progress);

}  // namespace sylvite
