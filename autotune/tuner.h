#pragma once
// The tuner: chooses a candidate for every kernel of a plan. In default mode by heuristic or from the
// database; in max-autotune by measuring, within a wall-clock budget.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "autotune/database.h"
#include "lowering/plan/plan.h"
#include "schedules/candidate.h"
#include "schedules/machine.h"

namespace sylvite {

struct Evaluator;  // autotune/evaluator.h

struct TuneOptions {
  double budget_seconds = 60;   ///< wall clock, over all kernels; 0 measures nothing
  double reserved_seconds = 0;  ///< of the budget, for the caller: the search ends so much earlier
  int compile_jobs = 2;         ///< compile workers at a time
  double compile_timeout = 30;  ///< seconds for one candidate
  double run_timeout = 10;      ///< seconds for one measurement
  std::string worker_command;   ///< the `sylvite` executable, started as `sylvite worker`
  std::string precision = "f32";
  bool extend = false;  ///< spend the budget on kernels that have a winner from as large a budget, too
};

/// What is going on, for progress bars and JSONL. Called from the tuning thread.
struct TuneProgress {
  std::string kernel;
  int trials = 0;
  int compiled = 0;
  int rejected = 0;
  double elapsed_seconds = 0;
  double budget_seconds = 0;
  /// By this run alone: sum of launches x the best time known before it over sum of launches x the best time now. A
  /// kernel without a time before begins with that of its incumbent.
  double speedup_so_far = 1;
  std::string warning;  ///< of something that has just gone wrong; "" most times
};
using ProgressCallback = std::function<void(const TuneProgress&)>;

/// How many times a kernel runs in the program, and what it costs now; decides its share of the budget.
struct TuneTask {
  const Kernel* kernel = nullptr;
  std::int64_t launches = 1;
};

/// What was chosen for one task.
struct TuneChoice {
  Candidate candidate;
  std::string origin;    ///< see Winner::origin
  double median_us = 0;  ///< 0 when not measured
  std::string object;    ///< its compiled object when the search has it at hand, else empty
  std::string why;       ///< one line: from the database, or what it beat
};

struct TuneResult {
  std::vector<TuneChoice> choices;        ///< one per task, in order
  int trials = 0;                         ///< measurements made now
  int compiled = 0;                       ///< candidates compiled now
  std::map<Verdict, int> verdicts;        ///< the trials of this run by verdict
  std::map<std::string, int> rejections;  ///< candidates never compiled or measured, by reason
  double seconds = 0;
  std::vector<std::string> warnings;
  std::string failure;  ///< why the machine ended the search, and what to do; "" when it did not
};

/// Tunes tasks within the budget. Every trial goes to the database as it happens, winners when their kernel
/// is done. Resumes: candidates with a stored trial under the same key are not measured again; kernels with a
/// winner that is pinned, or from as large a budget, are not searched again. Tasks with equal kernels are one. Every chosen
/// candidate that was measured has passed the check against the reference schedule; the heuristic one stays
/// where nothing beat it clearly. What the machine failed at is no trial, and leaves a kernel's search unfinished.
[[nodiscard]] TuneResult tune(const std::vector<TuneTask>& tasks, const Machine& machine, Database& database,
                              const TuneOptions& options, const ProgressCallback& progress = {});
/// The same with compile, measure and clock given; for tests.
[[nodiscard]] TuneResult tune(const std::vector<TuneTask>& tasks, const Machine& machine, Database& database,
                              const TuneOptions& options, const ProgressCallback& progress,
                              Evaluator& evaluator);

}  // namespace sylvite
