#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "autotune/tuner_run.h"

namespace sylvite {

namespace {

constexpr int race_samples = 15;
constexpr std::size_t race_challengers = 3;
/// A contestant that takes so much longer than when it was tried says that the machine was busy meanwhile.
constexpr double disturbed_ratio = 1.25;
constexpr int most_race_attempts = 3;
/// Without time for a race, only so clear a lead over the incumbent counts.
constexpr double unraced_ratio = 0.9;
/// Estimates, for the time set aside for races.
constexpr double race_setup_seconds = 0.2;
constexpr double compile_seconds = 0.3;
constexpr double unlimited = std::numeric_limits<double>::infinity();

bool is_disturbed(const TuneState& state, const std::vector<CompiledCandidate>& contestants,
                  const std::vector<Measurement>& measurements) {
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const double before = state.median_of(contestants[i].candidate);
    if (before > 0 && median(measurements[i].samples_us) > disturbed_ratio * before) return true;
  }
  return false;
}

}  // namespace

double Tuner::seconds_for_races() const {
  double seconds = 0;
  for (const auto& [id, state] : states_) {
    std::vector<Candidate> challengers = state.challengers(race_challengers);
    if (choices_.contains(id) || challengers.empty()) continue;
    auto missing = std::ranges::count_if(challengers, [&objects = state.objects](const Candidate& candidate) {
      return !objects.contains(candidate.to_string());
    });
    double sample_seconds = std::max(tuning_sample_us, state.best_us()) * 1e-6;
    const auto in_turns = static_cast<double>(challengers.size() + 1 + 2);  // two once more
    seconds += race_setup_seconds + compile_seconds * static_cast<double>(missing) +
               in_turns * (race_samples + 5) * sample_seconds;
  }
  return std::min(seconds, options_.budget_seconds / 3);
}

bool Tuner::take_winner_of_others(TuneState& state) {
  const std::optional<Winner> winner = database_.find_winner(*state.kernel, key_);
  if (!winner || winner->origin == origin_untried) return false;
  if (state.stored && state.stored->candidate == winner->candidate && state.stored->origin == winner->origin)
    return false;
  if (!state.started || winner->origin == origin_pinned) {
    choices_[state.kernel->id] = {winner->candidate, winner->origin, winner->median_us, "",
                                  "the winner of another process"};
    return true;
  }
  for (const Trial& trial : database_.trials(*state.kernel, key_))
    if (state.find_trial(trial.candidate) == nullptr) state.add_trial(trial);
  state.incumbent = winner->candidate;
  state.incumbent_origin = winner->origin;
  return false;
}

void Tuner::decide(TuneState& state) {
  if (options_.budget_seconds > 0 && take_winner_of_others(state)) return;
  const Trial* trial = state.find_trial(state.incumbent);
  std::vector<Candidate> challengers = state.challengers(race_challengers);
  const bool is_alone = challengers.empty();
  if (trial == nullptr && (is_alone || state.lost == 0)) {
    choose_untried(state);
    return;
  }
  if (is_alone && trial->verdict == Verdict::noisy) {
    choose_unjudged(state, "not judged: " + trial->message);
    return;
  }
  if (is_alone) {
    bool failed = trial->verdict != Verdict::ok;
    choose(state, failed ? state.reference : state.incumbent,
           failed ? origin_reference : std::string_view(state.incumbent_origin), state.incumbent_us(),
           failed ? "no other candidate passed the check" : "no candidate beat it");
    return;
  }
  if (options_.budget_seconds <= 0 || left() < -options_.budget_seconds || !ending().empty()) {
    choose_without_race(state, challengers);
    return;
  }
  std::vector<CompiledCandidate> contestants = compile_contestants(state, challengers);
  if (contestants.empty())
    choose_without_race(state, challengers);
  else
    race(state, contestants);
}

/// The incumbent, of which nothing new is known. Nothing is stored: the next search shall judge it.
void Tuner::choose_unjudged(TuneState& state, const std::string& why) {
  if (state.stored) {
    choices_[state.kernel->id] = {state.incumbent, state.stored->origin, state.stored->median_us, "", why};
    return;
  }
  std::string origin(options_.budget_seconds > 0 ? origin_untried : origin_heuristic);
  choices_[state.kernel->id] = {state.incumbent, origin, 0, "", why};
}

/// The incumbent, which has no trial.
void Tuner::choose_untried(TuneState& state) {
  bool searched = options_.budget_seconds > 0;
  choose_unjudged(state, !searched              ? "nothing is measured without a budget"
                         : state.lost > 0       ? "not measured: the machine failed at it"
                         : state.closed.empty() ? "not measured: the budget ended first"
                                                : "not measured: " + state.closed);
  if (searched && state.closed.empty() && state.lost == 0 && !state.stored) {
    std::string origin(origin_untried);
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
  if (state.incumbent_us() > 0) wanted.insert(wanted.begin(), state.incumbent);
  std::vector<Candidate> missing;
  std::vector<CompileJob> jobs;
  auto need = [&](const Candidate& candidate) {
    if (!state.objects.contains(candidate.to_string())) {
      missing.push_back(candidate);
      jobs.push_back({state.kernel, candidate, machine_.target});
    }
  };
  std::ranges::for_each(wanted, need);
  if (std::ranges::find(missing, state.reference) == missing.end()) need(state.reference);
  evaluator_.start_compiling(std::move(jobs));
  auto results = evaluator_.finish_compiling(options_.compile_timeout + 1);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ++result_.compiled;
    if (results[i] && results[i]->verdict == Verdict::ok) {
      state.objects[missing[i].to_string()] = {missing[i], std::move(results[i]->object),
                                               results[i]->seconds};
    }
  }
  std::vector<CompiledCandidate> contestants;
  for (const Candidate& candidate : wanted) {
    auto object = state.objects.find(candidate.to_string());
    if (object != state.objects.end()) contestants.push_back(object->second);
  }
  bool complete = state.objects.contains(state.reference.to_string()) &&
                  (state.incumbent_us() <= 0 || state.objects.contains(state.incumbent.to_string()));
  return complete ? contestants : std::vector<CompiledCandidate>{};
}

/// Interleaved, and again when the machine was busy meanwhile. Who failed has no samples.
std::vector<RaceEntry> Tuner::run_race(const TuneState& state,
                                       const std::vector<CompiledCandidate>& contestants) {
  std::vector<Measurement> measurements;
  for (int attempt = 1; attempt <= most_race_attempts; ++attempt) {
    measurements = evaluator_.measure(make_job(state, contestants, race_samples));
    if (!is_disturbed(state, contestants, measurements) || left() < 0) break;
  }
  std::vector<RaceEntry> entries;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    Trial trial = make_trial(*state.kernel, contestants[i], measurements[i]);
    bool ok = trial.verdict == Verdict::ok && !measurements[i].unverifiable;
    entries.push_back({ok ? trial.samples_us : std::vector<double>{}, trial.candidate.to_string().size()});
  }
  return entries;
}

/// The two once more, in the other order, so that what the order gives cannot pass for a lead. Without time for
/// that a narrow lead counts for nothing.
void Tuner::race_again(const TuneState& state, const CompiledCandidate& incumbent,
                       const CompiledCandidate& challenger, Duel& duel) {
  std::vector<RaceEntry> entries(2);
  if (left() > 0 && ending().empty()) entries = run_race(state, {challenger, incumbent});
  const std::vector<double>& challenger_us = entries[0].samples_us;
  const std::vector<double>& incumbent_us = entries[1].samples_us;
  duel.verdict = combine(duel.verdict, compare_samples(incumbent_us, challenger_us));
  if (challenger_us.empty() || incumbent_us.empty()) return;
  duel.challenger_us.insert(duel.challenger_us.end(), challenger_us.begin(), challenger_us.end());
  duel.incumbent_us.insert(duel.incumbent_us.end(), incumbent_us.begin(), incumbent_us.end());
}

/// The incumbent keeps its place unless a challenger is clearly faster in the same minute; a narrow lead must
/// repeat.
void Tuner::race(TuneState& state, const std::vector<CompiledCandidate>& contestants) {
  std::vector<RaceEntry> entries = run_race(state, contestants);
  const bool nobody_ran =
      std::ranges::all_of(entries, [](const RaceEntry& entry) { return entry.samples_us.empty(); });
  const bool incumbent_runs = state.incumbent_us() > 0;
  if (nobody_ran || (incumbent_runs && entries[0].samples_us.empty())) {
    choose_without_race(state, state.challengers(race_challengers));
    return;
  }
  if (!incumbent_runs) {
    entries.emplace(entries.begin());  // an empty place for it
    const std::size_t winner = decide_race(entries);
    choose(state, contestants[winner - 1].candidate, origin_search, median(entries[winner].samples_us),
           "the fastest that passed the check");
    return;
  }
  std::vector<Duel> duels;
  duels.reserve(entries.size());
  for (const RaceEntry& entry : entries)
    duels.push_back(
        {entries[0].samples_us, entry.samples_us, compare_samples(entries[0].samples_us, entry.samples_us)});
  const std::size_t leader = decide_race(entries);
  const bool is_narrow = duels[leader].verdict.is_narrow();
  if (is_narrow) race_again(state, contestants[0], contestants[leader], duels[leader]);
  for (std::size_t i = 1; i < duels.size(); ++i) {
    const auto& [incumbent_us, challenger_us, verdict] = duels[i];
    database_.record_race(*state.kernel, key_,
                          {state.incumbent, contestants[i].candidate, incumbent_us, challenger_us,
                           verdict.won()    ? "won"
                           : verdict.lost() ? "lost"
                                            : "tie"});
  }
  const Duel& duel = duels[leader];
  if (!duel.verdict.won()) {
    choose(
        state, state.incumbent, state.incumbent_origin, median(duel.incumbent_us),
        is_narrow ? "a narrow lead over it in the race did not repeat" : "no candidate beat it in the race");
    return;
  }
  choose(state, contestants[leader].candidate, origin_search, median(duel.challenger_us),
         fmt::format("{:.3f} of the time of the {} schedule in {}", duel.verdict.ratio,
                     state.incumbent_origin, is_narrow ? "the closer of two races" : "the race"));
}

void Tuner::warn_of_reference(const TuneState& state) {
  result_.warnings.push_back(
      fmt::format("kernel {} ({}) is left with its plain reference schedule, which is slow: {}",
                  state.kernel->id, kernel_class_name(state.kernel->kind), state.failures()));
}

void Tuner::choose(TuneState& state, const Candidate& candidate, std::string_view origin, double median_us,
                   const std::string& why) {
  const Trial* trial = state.find_trial(candidate);
  double error = trial == nullptr ? 0 : trial->error;
  auto object = state.objects.find(candidate.to_string());
  choices_[state.kernel->id] = {candidate, std::string(origin), median_us,
                                object == state.objects.end() ? "" : object->second.object, why};
  if (options_.budget_seconds <= 0) return;
  const bool cut_short = state.lost > 0 || (!state.closed.empty() && state.closed != exhausted);
  const bool plain = origin == origin_reference;
  if (plain) warn_of_reference(state);
  if (!(cut_short && plain)) {
    const bool unfinished = cut_short || (plain && state.closed != exhausted);
    double budget = unfinished ? 0 : state.closed == exhausted ? unlimited : options_.budget_seconds;
    database_.record_winner(*state.kernel, key_, {candidate, median_us, error, std::string(origin), budget});
  }
}

}  // namespace sylvite
