#include "autotune/try_candidates.h"

#include "autotune/machine_failure.h"
#include "base/error.h"

namespace sylvite {
namespace {

[[noreturn]] void fail_kernel(const Kernel& kernel, const std::string& message) {
  if (is_machine_failure(message)) throw IoError("{}", with_advice(message));
  throw CompileError("kernel {}: the plain reference schedule, which others are checked against, fails: {}",
                     kernel.id, message);
}

/// The reference's result first.
std::vector<CompileResult> compile_all(const Kernel& kernel, const Machine& machine,
                                       const std::vector<Candidate>& candidates, const TryOptions& options,
                                       Evaluator& evaluator) {
  std::vector<CompileJob> jobs{{&kernel, evaluator.reference(kernel), machine.target}};
  for (const Candidate& candidate : candidates) jobs.push_back({&kernel, candidate, machine.target});
  const double patience = options.compile_timeout * static_cast<double>(jobs.size());
  evaluator.start_compiling(std::move(jobs));
  std::vector<CompileResult> results;
  for (std::optional<CompileResult>& result : evaluator.finish_compiling(patience)) {
    if (!result)
      result = {Verdict::compile_timeout, "", "it did not compile in time", options.compile_timeout};
    if (result->unjudged) fail_kernel(kernel, result->message);
    results.push_back(std::move(*result));
  }
  if (results.at(0).verdict != Verdict::ok) fail_kernel(kernel, results[0].message);
  return results;
}

}  // namespace

std::vector<Trial> try_candidates(const Kernel& kernel, const Machine& machine,
                                  const std::vector<Candidate>& candidates, const TryOptions& options,
                                  Evaluator& evaluator) {
  const std::vector<CompileResult> compiled = compile_all(kernel, machine, candidates, options, evaluator);
  MeasureJob job;
  job.kernel = &kernel;
  job.target = machine.target;
  job.reference = {evaluator.reference(kernel), compiled[0].object, compiled[0].seconds};
  job.timing.threads = machine.threads;
  job.timing.samples = options.samples;
  job.timing.seconds = options.seconds;
  std::vector<Trial> trials;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const CompileResult& result = compiled[i + 1];
    trials.push_back({kernel.id, candidates[i], result.verdict, {}, 0, 0, result.message, result.seconds});
    if (result.verdict == Verdict::ok)
      job.candidates.push_back({candidates[i], result.object, result.seconds});
  }
  if (job.candidates.empty()) return trials;
  const std::vector<Measurement> measurements = evaluator.measure(job);
  std::size_t measured = 0;
  for (Trial& trial : trials) {
    if (trial.verdict != Verdict::ok) continue;
    const Measurement& measurement = measurements.at(measured);
    if (measurement.unverifiable) fail_kernel(kernel, measurement.message);
    trial = make_trial(kernel, job.candidates[measured++], measurement);
  }
  return trials;
}

}  // namespace sylvite
