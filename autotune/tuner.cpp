#include "autotune/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "autotune/evaluator.h"
#include "autotune/race.h"
#include "autotune/tune_state.h"

namespace sylvite {

namespace {

constexpr int batch_size = 4;
constexpr int short_samples = 3;
constexpr int long_samples = 7;
constexpr int race_samples = 15;
constexpr std::size_t race_challengers = 3;
constexpr double sample_us = 200;
/// Of a batch, candidates this close to its best are measured longer.
constexpr double promising_ratio = 1.2;
/// Share of the budget within which every kernel's incumbent is measured before any search.
constexpr double first_pass_share = 0.5;
/// Without time for a race, only so clear a lead over the incumbent counts.
constexpr double unraced_ratio = 0.9;
constexpr std::string_view exhausted = "every candidate was tried";
constexpr double unlimited = std::numeric_limits<double>::infinity();

/// Candidates of one kernel on their way from compiling to measuring.
struct Batch {
  TuneState* state = nullptr;
  std::vector<Candidate> candidates;  ///< to be measured
  std::vector<Candidate> compiled;    ///< to be compiled: the reference, too, when it is missing
  double best_before = 0;
  double begun = 0;
};

/// One call of tune().
class Tuner {
 public:
  Tuner(const Machine& machine, Database& database, const TuneOptions& options,
        const ProgressCallback& progress, Evaluator& evaluator)
      : machine_(machine),
        key_(tuning_key(machine, options.precision)),
        database_(database),
        options_(options),
        progress_(progress),
        evaluator_(evaluator),
        begun_(evaluator.now()) {}

  TuneResult run(const std::vector<TuneTask>& tasks);

 private:
  void add_task(const TuneTask& task);
  void search();
  std::optional<Batch> next_batch();
  TuneState* next_state();
  std::optional<Batch> fill_batch(TuneState& state);
  void start(Batch& batch);
  std::vector<CompiledCandidate> finish_compiling(Batch& batch);
  void evaluate(Batch& batch, const std::vector<CompiledCandidate>& compiled);
  void measure_shortly(TuneState& state, const CompiledCandidate& compiled);
  void measure_promising(TuneState& state, const std::vector<CompiledCandidate>& compiled);
  MeasureJob make_job(const TuneState& state, std::vector<CompiledCandidate> candidates, int samples) const;
  void record(TuneState& state, const Trial& trial);
  void report(const TuneState& state);

  void decide(TuneState& state);
  std::vector<CompiledCandidate> compile_contestants(TuneState& state,
                                                     const std::vector<Candidate>& challengers);
  void race(TuneState& state, const std::vector<CompiledCandidate>& contestants);
  void choose(TuneState& state, const Candidate& candidate, std::string_view origin, double median_us,
              const std::string& why);
  void choose_untried(TuneState& state);
  void choose_without_race(TuneState& state, const std::vector<Candidate>& challengers);

  [[nodiscard]] double elapsed() const { return evaluator_.now() - begun_; }
  [[nodiscard]] double left() const { return options_.budget_seconds - elapsed(); }
  [[nodiscard]] double seconds_for_races() const;
  [[nodiscard]] bool measures_alone() const { return machine_.threads > 1; }

  const Machine& machine_;
  TuningKey key_;
  Database& database_;
  const TuneOptions& options_;
  const ProgressCallback& progress_;
  Evaluator& evaluator_;
  double begun_;
  std::map<std::string, TuneState> states_;    ///< by kernel id, those that are searched
  std::map<std::string, TuneChoice> choices_;  ///< by kernel id
  TuneResult result_;
};

bool is_settled(const std::optional<Winner>& winner, const TuneOptions& options) {
  return winner && (options.budget_seconds <= 0 ||
                    (!options.extend && winner->budget_seconds >= options.budget_seconds));
}

void Tuner::add_task(const TuneTask& task) {
  const Kernel& kernel = *task.kernel;
  if (auto known = states_.find(kernel.id); known != states_.end()) {
    known->second.launches += task.launches;
    return;
  }
  if (choices_.contains(kernel.id)) {
    return;
  }
  auto winner = database_.find_winner(kernel, key_);
  if (is_settled(winner, options_)) {
    choices_[kernel.id] = {winner->candidate, winner->origin, winner->median_us, "", "the stored winner"};
    return;
  }
  TuneState& state = states_
                         .emplace(std::piecewise_construct, std::forward_as_tuple(kernel.id),
                                  std::forward_as_tuple(kernel, machine_, evaluator_,
                                                        database_.trials(kernel, key_), std::move(winner)))
                         .first->second;
  state.launches = task.launches;
}

TuneResult Tuner::run(const std::vector<TuneTask>& tasks) {
  for (const TuneTask& task : tasks) {
    add_task(task);
  }
  for (auto& [id, state] : states_) {
    double known = state.best_us();
    state.outlook.program_us = state.launches * (known > 0 ? known : state.outlook.program_us);
  }
  if (options_.budget_seconds > 0) {
    search();
  }
  for (auto& [id, state] : states_) {
    if (!choices_.contains(id)) {
      decide(state);
    }
    for (const auto& [reason, count] : state.search.rejections()) {
      result_.rejections[reason] += count;
    }
  }
  for (const TuneTask& task : tasks) {
    result_.choices.push_back(choices_.at(task.kernel->id));
  }
  result_.seconds = elapsed();
  return std::move(result_);
}

/// Compiles one batch while the batch before is measured, where threads leave a core for that; else in turns.
void Tuner::search() {
  std::optional<Batch> batch = next_batch();
  while (batch) {
    std::vector<CompiledCandidate> compiled = finish_compiling(*batch);
    std::optional<Batch> following;
    if (!measures_alone()) {
      following = next_batch();
    }
    evaluate(*batch, compiled);
    if (!following) {
      following = next_batch();
    }
    batch = std::move(following);
  }
}

std::optional<Batch> Tuner::next_batch() {
  while (left() > seconds_for_races()) {
    TuneState* state = next_state();
    if (state == nullptr) {
      return std::nullopt;
    }
    if (auto batch = fill_batch(*state)) {
      start(*batch);
      return batch;
    }
    if (state->in_flight) {
      state->waiting = true;  // results of the batch in flight may lead on
    } else {
      state->closed = exhausted;
    }
  }
  return std::nullopt;
}

/// Kernels whose incumbent was never tried come first, the longest first, for a share of the budget.
TuneState* Tuner::next_state() {
  std::vector<TuneState*> states;
  std::vector<TaskOutlook> outlooks;
  TuneState* unstarted = nullptr;
  for (auto& [id, state] : states_) {
    state.outlook.open = state.closed.empty() && !state.waiting;
    if (state.outlook.open && state.find_trial(state.incumbent) == nullptr && !state.started) {
      if (unstarted == nullptr || state.outlook.program_us > unstarted->outlook.program_us) {
        unstarted = &state;
      }
    } else {
      states.push_back(&state);
      outlooks.push_back(state.outlook);
    }
  }
  std::size_t chosen = choose_task(outlooks);
  bool in_first_pass = elapsed() < options_.budget_seconds * first_pass_share;
  if (unstarted != nullptr && (in_first_pass || chosen == outlooks.size())) {
    return unstarted;
  }
  return chosen == outlooks.size() ? nullptr : states[chosen];
}

/// The incumbent alone at first, so that every kernel soon has a time; then what the search proposes.
std::optional<Batch> Tuner::fill_batch(TuneState& state) {
  Batch batch{&state, {}, {}, state.best_us(), evaluator_.now()};
  if (!state.started && state.find_trial(state.incumbent) == nullptr) {
    batch.candidates = {state.incumbent};
  } else {
    batch.candidates = state.search.propose(batch_size);
    std::erase(batch.candidates, state.incumbent);
    if (batch.candidates.empty()) {
      batch.candidates = state.search.propose(batch_size);
    }
  }
  state.started = true;
  if (batch.candidates.empty()) {
    return std::nullopt;
  }
  return batch;
}

void Tuner::start(Batch& batch) {
  TuneState& state = *batch.state;
  if (!state.objects.contains(state.reference.to_string())) {
    batch.compiled.push_back(state.reference);
  }
  for (const Candidate& candidate : batch.candidates) {
    if (!(candidate == state.reference)) {
      batch.compiled.push_back(candidate);
    }
  }
  std::vector<CompileJob> jobs;
  for (const Candidate& candidate : batch.compiled) {
    jobs.push_back({state.kernel, candidate, machine_.target});
  }
  state.in_flight = true;
  evaluator_.start_compiling(std::move(jobs));
}

/// Records compile failures as trials; returns the candidates to measure.
std::vector<CompiledCandidate> Tuner::finish_compiling(Batch& batch) {
  TuneState& state = *batch.state;
  auto results = evaluator_.finish_compiling(std::max(0.0, left() - seconds_for_races()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i]) {
      continue;  // the budget ended first
    }
    const Candidate& candidate = batch.compiled[i];
    ++result_.compiled;
    if (results[i]->verdict == Verdict::ok) {
      state.objects[candidate.to_string()] = std::move(results[i]->object);
      continue;
    }
    if (candidate == state.reference) {
      state.closed = fmt::format("the reference schedule does not compile: {}", results[i]->message);
      result_.warnings.push_back(fmt::format("kernel {} is not tuned: {}", state.kernel->id, state.closed));
    }
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
  for (const Candidate& candidate : batch.candidates) {
    if (auto object = state.objects.find(candidate.to_string()); object != state.objects.end()) {
      compiled.push_back({candidate, object->second});
    }
  }
  return compiled;
}

void Tuner::evaluate(Batch& batch, const std::vector<CompiledCandidate>& compiled) {
  TuneState& state = *batch.state;
  bool has_reference = state.objects.contains(state.reference.to_string());
  for (const CompiledCandidate& candidate : compiled) {
    if (has_reference && state.closed.empty() && left() > seconds_for_races()) {
      measure_shortly(state, candidate);
    }
  }
  if (has_reference && state.closed.empty() && left() > seconds_for_races()) {
    measure_promising(state, compiled);
  }
  double after = state.best_us();
  update_outlook(state.outlook, batch.best_before, after, evaluator_.now() - batch.begun);
  if (after > 0) {
    state.outlook.program_us = state.launches * after;
  }
  if (batch.best_before == 0) {
    state.outlook.gain = TaskOutlook{}.gain;  // the first batch says nothing about the next
  }
  state.in_flight = state.waiting = false;
  state.trim_objects();
  report(state);
}

MeasureJob Tuner::make_job(const TuneState& state, std::vector<CompiledCandidate> candidates,
                           int samples) const {
  MeasureJob job;
  job.kernel = state.kernel;
  job.target = machine_.target;
  job.reference = {state.reference, state.objects.at(state.reference.to_string())};
  // Candidates much slower than the best are cut short.
  double best_seconds = std::max(state.best_us(), sample_us) * 1e-6;
  job.seconds = std::clamp(8 * best_seconds * samples * static_cast<double>(candidates.size()), 0.3, 10.0);
  job.candidates = std::move(candidates);
  job.threads = machine_.threads;
  job.samples = samples;
  job.sample_us = sample_us;
  return job;
}

Trial make_trial(const TuneState& state, const Candidate& candidate, const Measurement& measurement) {
  Trial trial{state.kernel->id,
              candidate,
              measurement.verdict,
              measurement.samples_us,
              median(measurement.samples_us),
              measurement.error,
              measurement.message};
  bool possible = std::isfinite(trial.median_us) && trial.median_us > 0;
  if (trial.verdict == Verdict::ok && !possible) {
    trial.verdict = Verdict::noisy;
    trial.message = fmt::format("impossible timing of {} us", trial.median_us);
  }
  if (trial.verdict == Verdict::ok && !(trial.error <= 1)) {
    trial.verdict = Verdict::wrong_result;
  }
  return trial;
}

void Tuner::measure_shortly(TuneState& state, const CompiledCandidate& compiled) {
  Measurement measurement = evaluator_.measure(make_job(state, {compiled}, short_samples)).at(0);
  if (measurement.unverifiable) {
    state.closed = measurement.message;
    result_.warnings.push_back(fmt::format("kernel {} is not tuned: {}", state.kernel->id, state.closed));
    return;
  }
  ++result_.trials;
  record(state, make_trial(state, compiled.candidate, measurement));
}

/// The second rung: the better half of the batch again, longer and side by side.
void Tuner::measure_promising(TuneState& state, const std::vector<CompiledCandidate>& compiled) {
  std::vector<const CompiledCandidate*> ranked;
  for (const CompiledCandidate& candidate : compiled) {
    double found = state.median_of(candidate.candidate);
    if (found > 0 && found < promising_ratio * state.best_us()) {
      ranked.push_back(&candidate);
    }
  }
  if (ranked.empty() || compiled.size() < 2) {
    return;
  }
  std::ranges::stable_sort(
      ranked, {}, [&](const CompiledCandidate* candidate) { return state.median_of(candidate->candidate); });
  ranked.resize(std::min(ranked.size(), (compiled.size() + 1) / 2));
  std::vector<CompiledCandidate> promising;
  for (const CompiledCandidate* candidate : ranked) {
    promising.push_back(*candidate);
  }
  auto measurements = evaluator_.measure(make_job(state, promising, long_samples));
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    if (!measurements[i].unverifiable && measurements[i].verdict != Verdict::noisy) {
      Trial trial = make_trial(state, promising[i].candidate, measurements[i]);
      state.add_trial(trial);
      database_.record_trial(*state.kernel, key_, trial);
    }
  }
}

void Tuner::record(TuneState& state, const Trial& trial) {
  state.add_trial(trial);
  database_.record_trial(*state.kernel, key_, trial);
  ++result_.verdicts[trial.verdict];
  report(state);
}

void Tuner::report(const TuneState& state) {
  if (!progress_) {
    return;
  }
  TuneProgress progress{
      state.kernel->id, result_.trials, result_.compiled, 0, elapsed(), options_.budget_seconds, 1};
  for (const auto& [verdict, count] : result_.verdicts) {
    progress.rejected += verdict == Verdict::ok ? 0 : count;
  }
  double before = 0;
  double after = 0;
  for (const auto& [id, other] : states_) {
    double heuristic = other.median_of(other.heuristic);
    before += other.launches * heuristic;
    after += other.launches * (heuristic > 0 ? other.best_us() : 0);
  }
  progress.speedup_so_far = after > 0 ? before / after : 1;
  progress_(progress);
}

double Tuner::seconds_for_races() const {
  double seconds = 0;
  for (const auto& [id, state] : states_) {
    if (!choices_.contains(id)) {
      auto contestants = static_cast<double>(state.challengers(race_challengers).size() + 1);
      double sample_seconds = std::max(sample_us, state.best_us()) * 1e-6;
      seconds += contestants > 1 ? 0.2 + contestants * (race_samples + 5) * sample_seconds : 0;
    }
  }
  return std::min(seconds, options_.budget_seconds / 3);
}

void Tuner::decide(TuneState& state) {
  const Trial* trial = state.find_trial(state.incumbent);
  if (trial == nullptr) {
    choose_untried(state);
    return;
  }
  std::vector<Candidate> challengers = state.challengers(race_challengers);
  if (challengers.empty()) {
    bool failed = trial->verdict != Verdict::ok && trial->verdict != Verdict::noisy;
    choose(state, failed ? state.reference : state.incumbent,
           failed ? origin_reference : std::string_view(state.incumbent_origin), state.incumbent_us(),
           failed ? "no other candidate passed the check" : "no candidate beat it");
    return;
  }
  if (options_.budget_seconds <= 0 || left() < -options_.budget_seconds) {
    choose_without_race(state, challengers);
    return;
  }
  std::vector<CompiledCandidate> contestants = compile_contestants(state, challengers);
  if (contestants.empty()) {
    choose_without_race(state, challengers);
  } else {
    race(state, contestants);
  }
}

/// The incumbent, of which nothing new is known.
void Tuner::choose_untried(TuneState& state) {
  bool searched = options_.budget_seconds > 0;
  std::string why = !searched              ? "nothing is measured without a budget"
                    : state.closed.empty() ? "not measured: the budget ended first"
                                           : "not measured: " + state.closed;
  if (state.stored) {
    choices_[state.kernel->id] = {state.incumbent, state.incumbent_origin, state.stored->median_us, "", why};
    return;
  }
  std::string origin(searched ? origin_untried : origin_heuristic);
  choices_[state.kernel->id] = {state.incumbent, origin, 0, "", why};
  if (searched && state.closed.empty()) {
    database_.record_winner(*state.kernel, key_, {state.incumbent, 0, 0, origin, options_.budget_seconds});
  }
}

void Tuner::choose_without_race(TuneState& state, const std::vector<Candidate>& challengers) {
  double incumbent = state.incumbent_us();
  double best = state.median_of(challengers.front());
  if (incumbent <= 0 || best < unraced_ratio * incumbent) {
    choose(state, challengers.front(), origin_search, best,
           fmt::format("far ahead of the {} schedule when measured", state.incumbent_origin));
  } else {
    choose(state, state.incumbent, state.incumbent_origin, incumbent, "no candidate was clearly faster");
  }
}

/// The incumbent (unless it failed) and the challengers, with objects; empty when the reference or the
/// incumbent has none.
std::vector<CompiledCandidate> Tuner::compile_contestants(TuneState& state,
                                                          const std::vector<Candidate>& challengers) {
  std::vector<Candidate> wanted = challengers;
  if (state.incumbent_us() > 0) {
    wanted.insert(wanted.begin(), state.incumbent);
  }
  std::vector<Candidate> missing;
  std::vector<CompileJob> jobs;
  auto need = [&](const Candidate& candidate) {
    if (!state.objects.contains(candidate.to_string())) {
      missing.push_back(candidate);
      jobs.push_back({state.kernel, candidate, machine_.target});
    }
  };
  std::ranges::for_each(wanted, need);
  if (std::ranges::find(missing, state.reference) == missing.end()) {
    need(state.reference);
  }
  evaluator_.start_compiling(std::move(jobs));
  auto results = evaluator_.finish_compiling(options_.compile_timeout + 1);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ++result_.compiled;
    if (results[i] && results[i]->verdict == Verdict::ok) {
      state.objects[missing[i].to_string()] = std::move(results[i]->object);
    }
  }
  std::vector<CompiledCandidate> contestants;
  for (const Candidate& candidate : wanted) {
    auto object = state.objects.find(candidate.to_string());
    if (object != state.objects.end()) {
      contestants.push_back({candidate, object->second});
    }
  }
  bool complete = state.objects.contains(state.reference.to_string()) &&
                  (state.incumbent_us() <= 0 || state.objects.contains(state.incumbent.to_string()));
  return complete ? contestants : std::vector<CompiledCandidate>{};
}

/// Interleaved: the incumbent keeps its place unless a challenger is clearly faster in the same minute.
void Tuner::race(TuneState& state, const std::vector<CompiledCandidate>& contestants) {
  auto measurements = evaluator_.measure(make_job(state, contestants, race_samples));
  std::vector<RaceEntry> entries;
  bool incumbent_runs = state.incumbent_us() > 0;
  if (!incumbent_runs) {
    entries.emplace_back();  // an empty place for it
  }
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    Trial trial = make_trial(state, contestants[i].candidate, measurements[i]);
    bool ok = trial.verdict == Verdict::ok && !measurements[i].unverifiable;
    entries.push_back({ok ? trial.samples_us : std::vector<double>{}, trial.candidate.to_string().size()});
  }
  if (incumbent_runs && entries[0].samples_us.empty()) {
    choose_without_race(state, state.challengers(race_challengers));
    return;
  }
  for (std::size_t i = 1; incumbent_runs && i < entries.size(); ++i) {
    RaceVerdict verdict = compare_samples(entries[0].samples_us, entries[i].samples_us);
    database_.record_race(
        *state.kernel, key_,
        {state.incumbent, contestants[i].candidate, entries[0].samples_us, entries[i].samples_us,
         verdict.won()    ? "won"
         : verdict.lost() ? "lost"
                          : "tie"});
  }
  std::size_t winner = decide_race(entries);
  if (winner == 0) {
    choose(state, state.incumbent, state.incumbent_origin, median(entries[0].samples_us),
           "no candidate beat it in the race");
    return;
  }
  const Candidate& candidate = contestants[incumbent_runs ? winner : winner - 1].candidate;
  double ratio =
      incumbent_runs ? compare_samples(entries[0].samples_us, entries[winner].samples_us).ratio : 0;
  choose(state, candidate, origin_search, median(entries[winner].samples_us),
         incumbent_runs
             ? fmt::format("{:.3f} of the time of the {} schedule in the race", ratio, state.incumbent_origin)
             : "the fastest that passed the check");
}

void Tuner::choose(TuneState& state, const Candidate& candidate, std::string_view origin, double median_us,
                   const std::string& why) {
  const Trial* trial = state.find_trial(candidate);
  double error = trial == nullptr ? 0 : trial->error;
  auto object = state.objects.find(candidate.to_string());
  choices_[state.kernel->id] = {candidate, std::string(origin), median_us,
                                object == state.objects.end() ? "" : object->second, why};
  if (options_.budget_seconds > 0) {
    double budget = state.closed == exhausted ? unlimited : options_.budget_seconds;
    database_.record_winner(*state.kernel, key_, {candidate, median_us, error, std::string(origin), budget});
  }
}

}  // namespace

TuneResult tune(const std::vector<TuneTask>& tasks, const Machine& machine, Database& database,
                const TuneOptions& options, const ProgressCallback& progress, Evaluator& evaluator) {
  return Tuner(machine, database, options, progress, evaluator).run(tasks);
}

TuneResult tune(const std::vector<TuneTask>& tasks, const Machine& machine, Database& database,
                const TuneOptions& options, const ProgressCallback& progress) {
  WorkerOptions workers;
  workers.command = options.worker_command;
  workers.workers = machine.threads > 1 ? options.compile_jobs : std::max(1, options.compile_jobs - 1);
  workers.compile_timeout = options.compile_timeout;
  workers.run_timeout = options.run_timeout;
  auto pool = std::make_shared<WorkerPool>(workers);
  Evaluator evaluator = make_evaluator(pool);
  TuneResult result = tune(tasks, machine, database, options, progress, evaluator);
  if (!pool->warning().empty()) {
    result.warnings.push_back(pool->warning());
  }
  return result;
}

}  // namespace sylvite
