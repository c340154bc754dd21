#include "autotune/tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "autotune/tuner_run.h"
#include "base/error.h"
#include "base/log.h"

namespace sylvite {

namespace {

constexpr int batch_size = 4;
/// Share of the budget within which every kernel's incumbent is measured before any search.
constexpr double first_pass_share = 0.5;

bool is_settled(const std::optional<Winner>& winner, const TuneOptions& options) {
  return winner && (winner->origin == origin_pinned || options.budget_seconds <= 0 ||
                    (!options.extend && winner->budget_seconds >= options.budget_seconds));
}

}  // namespace

void Tuner::add_task(const TuneTask& task) {
  const Kernel& kernel = *task.kernel;
  if (auto known = states_.find(kernel.id); known != states_.end()) {
    known->second.launches += task.launches;
    return;
  }
  if (choices_.contains(kernel.id)) return;
  auto winner = database_.find_winner(kernel, key_);
  if (is_settled(winner, options_)) {
    if (winner->origin == origin_reference && options_.budget_seconds > 0) {
      result_.warnings.push_back(fmt::format(
          "kernel {} has only its plain reference schedule, which is slow: sylvite db trials {} tells what "
          "became of the others",
          kernel.id, kernel.id));
    }
    const std::string why = winner->origin == origin_pinned ? "pinned" : "the stored winner";
    choices_[kernel.id] = {winner->candidate, winner->origin, winner->median_us, "", why};
    return;
  }
  try {
    TuneState& state = states_
                           .emplace(std::piecewise_construct, std::forward_as_tuple(kernel.id),
                                    std::forward_as_tuple(kernel, machine_, evaluator_,
                                                          database_.trials(kernel, key_), std::move(winner)))
                           .first->second;
    state.launches = task.launches;
  } catch (const Error& error) {  // a space that took the kernel cannot make its schedule
    result_.warnings.push_back(fmt::format("kernel {} is not tuned: {}", kernel.id, error.what()));
    choices_[kernel.id] = {evaluator_.reference(kernel), std::string(origin_reference), 0, "", error.what()};
  }
}

TuneResult Tuner::run(const std::vector<TuneTask>& tasks) {
  known_trials_ = database_.last_trial();
  for (const TuneTask& task : tasks) add_task(task);
  log_line(LogLevel::info, "tuning: {} kernels within {:.0f} s, {} have a winner", states_.size(), left(),
           choices_.size());
  for (auto& [id, state] : states_) {
    state.known_us = state.best_us();
    state.outlook.program_us =
        state.launches * (state.known_us > 0 ? state.known_us : state.outlook.program_us);
  }
  if (options_.budget_seconds > 0) search();
  if (result_.failure.empty()) result_.failure = evaluator_.refusal();
  if (result_.failure.empty() && result_.verdicts.empty()) result_.failure = last_loss_;
  for (auto& [id, state] : states_) {
    if (!choices_.contains(id)) decide(state);
    for (const auto& [reason, count] : state.search.rejections()) result_.rejections[reason] += count;
  }
  for (const TuneTask& task : tasks) result_.choices.push_back(choices_.at(task.kernel->id));
  result_.seconds = elapsed();
  log_results();
  return std::move(result_);
}

void Tuner::log_results() const {
  for (const auto& [id, choice] : choices_)
    log_line(LogLevel::info, "kernel {}: {}, {:.1f} us: {}", id, choice.origin, choice.median_us, choice.why);
  for (const auto& [reason, count] : result_.rejections)
    log_line(LogLevel::debug, "{} candidates were not tried: {}", count, reason);
  log_line(LogLevel::info, "tuning: {} trials in {:.1f} s, {} candidates compiled", result_.trials,
           result_.seconds, result_.compiled);
}

/// Compiles one batch while the batch before is measured, where threads leave a core for that; else in turns.
void Tuner::search() {
  std::optional<Batch> batch = next_batch();
  while (batch) {
    std::vector<CompiledCandidate> compiled = finish_compiling(*batch);
    std::optional<Batch> following;
    if (!measures_alone()) following = next_batch();
    evaluate(*batch, compiled);
    if (!following) following = next_batch();
    batch = std::move(following);
  }
}

std::optional<Batch> Tuner::next_batch() {
  if (const std::string reason = ending(); !reason.empty()) {
    for (auto& [id, state] : states_) close(state, reason);
    return std::nullopt;
  }
  learn_from_others();
  while (left() > seconds_for_races()) {
    TuneState* state = next_state();
    if (state == nullptr) return std::nullopt;
    if (auto batch = fill_batch(*state)) {
      start(*batch);
      return batch;
    }
    if (state->in_flight)
      state->waiting = true;  // results of the batch in flight may lead on
    else
      state->closed = exhausted;
  }
  return std::nullopt;
}

void Tuner::learn_from_others() {
  for (const Trial& trial : database_.trials_since(key_, known_trials_)) {
    const auto found = states_.find(trial.kernel_id);
    if (found == states_.end() || found->second.find_trial(trial.candidate) != nullptr) continue;
    TuneState& state = found->second;
    state.add_trial(trial);
    if (state.best_us() > 0) state.outlook.program_us = state.launches * state.best_us();
  }
  elsewhere_ = database_.kernels_elsewhere(key_);
}

void Tuner::say_what_is_tried(const std::set<std::string>& kernel_ids) {
  if (announced_ == kernel_ids) return;
  database_.announce(key_, kernel_ids);
  announced_ = kernel_ids;
}

TuneState* Tuner::next_state() {
  TuneState* state = next_state_of(/*elsewhere=*/false);
  return state == nullptr && !elsewhere_.empty() ? next_state_of(/*elsewhere=*/true) : state;
}

/// Kernels whose incumbent was never tried come first, the longest first, for a share of the budget.
TuneState* Tuner::next_state_of(bool elsewhere) {
  std::vector<TuneState*> states;
  std::vector<TaskOutlook> outlooks;
  TuneState* unstarted = nullptr;
  for (auto& [id, state] : states_) {
    state.outlook.open = state.closed.empty() && !state.waiting && elsewhere_.contains(id) == elsewhere;
    if (state.outlook.open && state.find_trial(state.incumbent) == nullptr && !state.started) {
      if (unstarted == nullptr || state.outlook.program_us > unstarted->outlook.program_us)
        unstarted = &state;
    } else {
      states.push_back(&state);
      outlooks.push_back(state.outlook);
    }
  }
  std::size_t chosen = choose_task(outlooks);
  bool in_first_pass = elapsed() < options_.budget_seconds * first_pass_share;
  if (unstarted != nullptr && (in_first_pass || chosen == outlooks.size())) return unstarted;
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
    if (batch.candidates.empty()) batch.candidates = state.search.propose(batch_size);
  }
  state.started = true;
  if (batch.candidates.empty()) return std::nullopt;
  return batch;
}

void Tuner::start(Batch& batch) {
  TuneState& state = *batch.state;
  if (!state.objects.contains(state.reference.to_string())) batch.compiled.push_back(state.reference);
  for (const Candidate& candidate : batch.candidates)
    if (!(candidate == state.reference)) batch.compiled.push_back(candidate);
  std::vector<CompileJob> jobs;
  jobs.reserve(batch.compiled.size());
  for (const Candidate& candidate : batch.compiled)
    jobs.push_back({state.kernel, candidate, machine_.target});
  state.in_flight = true;
  std::set<std::string> tried;
  for (const auto& [id, each] : states_)
    if (each.in_flight) tried.insert(id);
  say_what_is_tried(tried);
  evaluator_.start_compiling(std::move(jobs));
}

TuneResult tune(const std::vector<TuneTask>& tasks, const Machine& machine, Database& database,
                const TuneOptions& options, const ProgressCallback& progress, Evaluator& evaluator) {
  return Tuner(machine, database, options, progress, evaluator).run(tasks);
}

TuneResult tune(const std::vector<TuneTask>& tasks, const Machine& machine, Database& database,
                const TuneOptions& options, const ProgressCallback& progress) {
  Evaluator evaluator = make_evaluator(options, machine);
  return tune(tasks, machine, database, options, progress, evaluator);
}

}  // namespace sylvite
