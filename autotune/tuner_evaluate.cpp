#include <fmt/format.h>

#include <algorithm>

#include "autotune/machine_failure.h"
#include "autotune/tuner_run.h"
#include "base/log.h"

namespace sylvite {

namespace {

constexpr int short_samples = 3;
constexpr int long_samples = 7;
/// Of a batch, candidates this close to its best are measured longer.
constexpr double promising_ratio = 1.2;
/// So many candidates lost to the machine end a kernel's search, so many in a row the whole search.
constexpr int most_lost_of_kernel = 3;
constexpr int most_lost_in_a_row = 6;

}  // namespace

/// Records compile failures as trials; returns the candidates to measure.
std::vector<CompiledCandidate> Tuner::finish_compiling(Batch& batch) {
  TuneState& state = *batch.state;
  auto results = evaluator_.finish_compiling(std::max(0.0, left() - seconds_for_races()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) continue;  // the budget ended first
    const Candidate& candidate = batch.compiled[i];
    ++result_.compiled;
    if (results[i]->unjudged) {
      lose(state, candidate, results[i]->message, lost_compilations_);
      continue;
    }
    lost_compilations_ = 0;
    if (results[i]->verdict == Verdict::ok) {
      state.objects[candidate.to_string()] = {candidate, std::move(results[i]->object), results[i]->seconds};
      continue;
    }
    if (candidate == state.reference)
      close(state, fmt::format("the reference schedule does not compile: {}", results[i]->message));
    record(state, {state.kernel->id,
                   candidate,
                   results[i]->verdict,
                   {},
                   0,
                   0,
                   results[i]->message,
                   results[i]->seconds});
  }
  std::vector<CompiledCandidate> compiled;
  for (const Candidate& candidate : batch.candidates)
    if (auto object = state.objects.find(candidate.to_string()); object != state.objects.end())
      compiled.push_back(object->second);
  return compiled;
}

void Tuner::evaluate(Batch& batch, const std::vector<CompiledCandidate>& compiled) {
  TuneState& state = *batch.state;
  bool has_reference = state.objects.contains(state.reference.to_string());
  for (const CompiledCandidate& candidate : compiled)
    if (has_reference && goes_on(state)) measure_shortly(state, candidate);
  if (has_reference && goes_on(state)) measure_promising(state, compiled);
  double after = state.best_us();
  update_outlook(state.outlook, batch.best_before, after, evaluator_.now() - batch.begun);
  if (after > 0) state.outlook.program_us = state.launches * after;
  if (batch.best_before == 0)
    state.outlook.gain = TaskOutlook{}.gain;  // the first batch says nothing about the next
  state.in_flight = state.waiting = false;
  state.trim_objects();
  report(state);
}

MeasureJob Tuner::make_job(const TuneState& state, std::vector<CompiledCandidate> candidates,
                           int samples) const {
  MeasureJob job;
  job.kernel = state.kernel;
  job.target = machine_.target;
  job.reference = state.objects.at(state.reference.to_string());
  // Candidates much slower than the best are cut short.
  double best_seconds = std::max(state.best_us(), tuning_sample_us) * 1e-6;
  job.timing.seconds =
      std::clamp(8 * best_seconds * samples * static_cast<double>(candidates.size()), 0.3, 10.0);
  job.candidates = std::move(candidates);
  job.timing.threads = machine_.threads;
  job.timing.samples = samples;
  job.timing.sample_us = tuning_sample_us;
  return job;
}

void Tuner::measure_shortly(TuneState& state, const CompiledCandidate& compiled) {
  Measurement measurement = evaluator_.measure(make_job(state, {compiled}, short_samples)).at(0);
  if (measurement.unverifiable) {
    if (is_machine_failure(measurement.message))
      lose(state, compiled.candidate, measurement.message, lost_measurements_);
    else
      close(state, measurement.message);
    return;
  }
  lost_measurements_ = 0;
  ++result_.trials;
  record(state, make_trial(*state.kernel, compiled, measurement));
}

/// The second rung: the better half of the batch again, longer and side by side.
void Tuner::measure_promising(TuneState& state, const std::vector<CompiledCandidate>& compiled) {
  std::vector<const CompiledCandidate*> ranked;
  for (const CompiledCandidate& candidate : compiled) {
    double found = state.median_of(candidate.candidate);
    if (found > 0 && found < promising_ratio * state.best_us()) ranked.push_back(&candidate);
  }
  if (ranked.empty() || compiled.size() < 2) return;
  std::ranges::stable_sort(
      ranked, {}, [&](const CompiledCandidate* candidate) { return state.median_of(candidate->candidate); });
  ranked.resize(std::min(ranked.size(), (compiled.size() + 1) / 2));
  std::vector<CompiledCandidate> promising;
  promising.reserve(ranked.size());
  for (const CompiledCandidate* candidate : ranked) promising.push_back(*candidate);
  auto measurements = evaluator_.measure(make_job(state, promising, long_samples));
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    if (!measurements[i].unverifiable && measurements[i].verdict != Verdict::noisy) {
      Trial trial = make_trial(*state.kernel, promising[i], measurements[i]);
      state.add_trial(trial);
      database_.record_trial(*state.kernel, key_, trial);
    }
  }
}

void Tuner::lose(TuneState& state, const Candidate& candidate, const std::string& message, int& in_a_row) {
  state.skip(candidate);
  last_loss_ = with_advice(message);
  if (++in_a_row == most_lost_in_a_row) result_.failure = last_loss_;
  if (candidate == state.reference || state.lost == most_lost_of_kernel) close(state, last_loss_);
}

std::string Tuner::ending() const {
  if (evaluator_.is_interrupted()) return "interrupted";
  return result_.failure.empty() ? evaluator_.refusal() : result_.failure;
}

void Tuner::close(TuneState& state, const std::string& reason) {
  if (!state.closed.empty()) return;
  state.closed = reason;
  if (ending().empty())  // else one message of that is enough
    result_.warnings.push_back(fmt::format("kernel {} is not tuned: {}", state.kernel->id, reason));
}

void Tuner::record(TuneState& state, const Trial& trial) {
  state.add_trial(trial);
  database_.record_trial(*state.kernel, key_, trial);
  ++result_.verdicts[trial.verdict];
  log_line(LogLevel::debug, "trial: kernel {}, {}, {}, {:.1f} us{}{}", trial.kernel_id,
           trial.candidate.form.to_string(), verdict_name(trial.verdict), trial.median_us,
           trial.message.empty() ? "" : ": ", trial.message);
  report(state);
}

std::string Tuner::fresh_warning() {
  const std::string& all = database_.warning();
  const std::size_t separator = warned_ == 0 ? 0 : 2;  // "; "
  std::string fresh = all.substr(std::min(all.size(), warned_ + separator));
  warned_ = all.size();
  return fresh;
}

void Tuner::report(const TuneState& state) {
  if (!progress_) return;
  TuneProgress progress{
      state.kernel->id, result_.trials, result_.compiled, 0, elapsed(), options_.budget_seconds, 1,
      fresh_warning()};
  for (const auto& [verdict, count] : result_.verdicts)
    progress.rejected += verdict == Verdict::ok ? 0 : count;
  double before = 0;
  double after = 0;
  for (const auto& [id, other] : states_) {
    double began = other.known_us > 0 ? other.known_us : other.incumbent_us();
    before += other.launches * began;
    after += other.launches * (began > 0 ? other.best_us() : 0);
  }
  progress.speedup_so_far = after > 0 ? before / after : 1;
  progress_(progress);
}

}  // namespace sylvite
