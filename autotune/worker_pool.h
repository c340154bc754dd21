#pragma once
// Compiling and measuring candidates in killable child processes (`sylvite worker`).

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "autotune/trial.h"
#include "lowering/plan/kernel.h"

namespace sylvite {

struct WorkerOptions {
  /// The `sylvite` executable. "" compiles in this process, without limits, and measures nothing; so does a
  /// command that cannot be started, or is another build than this one, with a warning.
  std::string command;
  int workers = 2;  ///< compiling children at a time; one more measures. Started when first needed
  double compile_timeout = 30;  ///< wall-clock seconds for one candidate; then the child is killed
  double run_timeout = 10;      ///< seconds for a candidate's first run
  std::int64_t memory_bytes = std::int64_t{16} << 30;  ///< address space of a child
};

/// `kernel` must outlive the job.
struct CompileJob {
  const Kernel* kernel = nullptr;
  Candidate candidate;
  std::string target;
};
struct CompileResult {
  Verdict verdict = Verdict::ok;  ///< ok, compile_error or compile_timeout; noisy when unjudged
  std::string object;             ///< the object's bytes when ok
  std::string message;            ///< why not, when not ok
  double seconds = 0;
  bool unjudged =
      false;  ///< the machine failed (autotune/machine_failure.h): nothing is known of the candidate
};

/// A candidate with the object that compile() made of it.
struct CompiledCandidate {
  Candidate candidate;
  std::string object;
  double compile_seconds = 0;
};

/// Checks and times candidates of one kernel in one child. Several candidates are timed interleaved
/// (ABAB...), so that their medians may be compared whatever the machine does meanwhile.
struct MeasureJob {
  const Kernel* kernel = nullptr;
  std::string target;
  CompiledCandidate reference;  ///< the oracle; its outputs are computed once per child and kernel
  std::vector<CompiledCandidate> candidates;  ///< at least one
  Timing timing;
  double reference_seconds = 60;  ///< extra time allowed for the reference and the inputs
};
struct Measurement {
  Verdict verdict = Verdict::ok;
  std::vector<double> samples_us;  ///< microseconds per call
  double error = 0;                ///< see autotune/verify.h
  std::string message;
  /// The reference or the machine failed: nothing is known of the candidate.
  bool unverifiable = false;
};

/// Somebody asked to stop: nothing failed.
struct Stopped {};

using JobId = std::int64_t;
/// A finished job: exactly one of the two is set.
struct JobResult {
  JobId id = 0;
  std::optional<CompileResult> compiled;
  std::optional<std::vector<Measurement>> measured;  ///< in the order of MeasureJob::candidates
};

/// Workers live as long as the pool and serve many jobs; one that crashes or overruns is killed and replaced,
/// and its job ends with a verdict. No call throws for anything a candidate does. Thread safety: one thread,
/// which must live as long as the pool (children die with the thread that started them).
class WorkerPool {
 public:
  explicit WorkerPool(WorkerOptions options);
  ~WorkerPool();  ///< kills workers that are still busy
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Compiles all jobs in parallel; results in the order of `jobs`. `on_done(i)` is called after each.
  /// Throws Stopped, with jobs outstanding, when `stop` asks for it. REQUIRES no submitted jobs outstanding.
  [[nodiscard]] std::vector<CompileResult> compile(const std::vector<CompileJob>& jobs,
                                                   const std::function<void(std::size_t)>& on_done = {},
                                                   const std::stop_token& stop = {});
  [[nodiscard]] std::vector<Measurement> measure(const MeasureJob& job);  ///< submit and wait for this job

  /// Queues a job; jobs of a kind start in order. Measurements run one at a time, beside compilations: for
  /// exact timings of threaded kernels, submit them apart.
  JobId submit(CompileJob job);
  JobId submit(MeasureJob job);
  void cancel_compilations();  ///< kills and forgets submitted compile jobs; next() will not return them
  /// The next finished job, waiting up to `timeout` seconds; nothing when none finished in that time.
  [[nodiscard]] std::optional<JobResult> next(double timeout);
  [[nodiscard]] const std::string& warning() const;  ///< why children could not be used; "" when all is well
  [[nodiscard]] std::size_t outstanding() const;     ///< submitted jobs that next() has not returned

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace sylvite
