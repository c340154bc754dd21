#include "autotune/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/interrupt.h"

namespace sylvite {

namespace {

/// An interruption is noticed after so long.
constexpr double patience_seconds = 0.2;

/// A batch of compile jobs on its way through the pool, while measurements go the same way.
struct CandidateBatch {
  std::shared_ptr<WorkerPool> pool;
  std::vector<JobId> ids;

  void start(std::vector<CompileJob> jobs) {
    ids.clear();
    for (CompileJob& job : jobs) ids.push_back(pool->submit(std::move(job)));
  }

  std::vector<std::optional<CompileResult>> finish(double timeout) {
    std::vector<std::optional<CompileResult>> results(ids.size());
    double end = steady_seconds() + timeout;
    while (pool->outstanding() > 0) {
      auto result = pool->next(std::clamp(end - steady_seconds(), 0.0, patience_seconds));
      if (!result) {
        if (steady_seconds() < end && interrupt_signal() == 0) continue;
        pool->cancel_compilations();
        break;
      }
      results.at(static_cast<std::size_t>(result->id - ids.front())) = std::move(result->compiled);
    }
    return results;
  }
};

}  // namespace

Trial make_trial(const Kernel& kernel, const CompiledCandidate& compiled, const Measurement& measurement) {
  Trial trial{kernel.id,
              compiled.candidate,
              measurement.verdict,
              measurement.samples_us,
              median(measurement.samples_us),
              measurement.error,
              measurement.message,
              compiled.compile_seconds};
  bool possible = std::isfinite(trial.median_us) && trial.median_us > 0;
  if (trial.verdict == Verdict::ok && !possible) {
    trial.verdict = Verdict::noisy;
    trial.message = fmt::format("impossible timing of {} us", trial.median_us);
  }
  if (trial.verdict == Verdict::ok && !(trial.error <= 1)) trial.verdict = Verdict::wrong_result;
  return trial;
}

Evaluator make_evaluator(const std::shared_ptr<WorkerPool>& pool, const Machine& machine) {
  auto batch = std::make_shared<CandidateBatch>(CandidateBatch{pool, {}});
  Evaluator evaluator;
  evaluator.spaces = [](const Kernel& kernel, const Machine& m) { return spaces_for(kernel, m); };
  evaluator.reference = [machine](const Kernel& kernel) { return reference_candidate(kernel, machine); };
  evaluator.start_compiling = [batch](std::vector<CompileJob> jobs) { batch->start(std::move(jobs)); };
  evaluator.finish_compiling = [batch](double timeout) { return batch->finish(timeout); };
  evaluator.measure = [pool](const MeasureJob& job) { return pool->measure(job); };
  evaluator.refusal = [pool] { return pool->warning(); };
  evaluator.is_interrupted = [] { return interrupt_signal() != 0; };
  evaluator.now = steady_seconds;
  return evaluator;
}

Evaluator make_evaluator(const TuneOptions& options, const Machine& machine) {
  WorkerOptions workers;
  // Memory of the device has addresses in the child, too: of a language model's head, a gigabyte a candidate.
  constexpr std::int64_t bytes_with_gpu = std::int64_t{256} << 30;
  if (machine.gpu) workers.memory_bytes = bytes_with_gpu;
  workers.command = options.worker_command;
  workers.workers = options.compile_jobs;
  workers.compile_timeout = options.compile_timeout;
  workers.run_timeout = options.run_timeout;
  return make_evaluator(std::make_shared<WorkerPool>(workers), machine);
}

}  // namespace sylvite
