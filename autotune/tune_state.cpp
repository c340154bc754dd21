#include "autotune/tune_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace sylvite {

namespace {

/// A measured candidate this much slower than the incumbent is not worth a race.
constexpr double hopeless_ratio = 1.05;
constexpr std::size_t kept_objects = 4;

/// Whether the space's candidates are loops of Halide. The others are kernels written for tensor cores.
bool makes_loops(const BoundSpace& space) {
  return !space.at(space.heuristic).schedule.decisions.empty();
}

bool is_made_of_products(const Kernel& kernel) {
  return kernel.kind == KernelClass::matmul || kernel.kind == KernelClass::convolution ||
         kernel.kind == KernelClass::attention;
}

/// All spaces but the one that only holds the reference, unless there is no other. Loops take 20 times as
/// long for products as tensor cores do: they are not tried beside those.
std::vector<BoundSpace> searched_spaces(const Kernel& kernel, std::vector<BoundSpace> spaces,
                                        const Candidate& reference) {
  if (spaces.size() > 1) {
    std::erase_if(spaces, [&](const BoundSpace& space) {
      return space.parameters.empty() && space.at(space.heuristic) == reference;
    });
  }
  if (is_made_of_products(kernel) && !std::ranges::all_of(spaces, makes_loops))
    std::erase_if(spaces, makes_loops);
  return spaces;
}

/// The first space at its heuristic point, as default_candidate chooses.
Candidate heuristic_candidate(const std::vector<BoundSpace>& spaces, const Candidate& reference) {
  return spaces.empty() ? reference : spaces.front().at(spaces.front().heuristic);
}

/// The origin of the incumbent once it is measured: what was stored untried is the heuristic choice.
std::string origin_when_measured(const std::optional<Winner>& stored) {
  return std::string(!stored || stored->origin == origin_untried ? origin_heuristic : stored->origin);
}

/// Estimated time of the kernel in microseconds, for the order in which kernels are begun; 1 when there is no
/// estimate.
double estimated_us(const std::vector<BoundSpace>& spaces) {
  const auto space = std::ranges::find_if(spaces, [](const BoundSpace& each) { return bool(each.cost); });
  return space == spaces.end() ? 1 : 1e6 * space->cost(space->heuristic);
}

}  // namespace

TuneState::TuneState(const Kernel& tuned, const Machine& machine, const Evaluator& evaluator,
                     const std::vector<Trial>& stored_trials, std::optional<Winner> stored_winner)
    : TuneState(tuned, evaluator.spaces(tuned, machine), evaluator.reference(tuned),
                std::move(stored_winner)) {
  for (const Trial& trial : stored_trials) add_trial(trial);
}

TuneState::TuneState(const Kernel& tuned, const std::vector<BoundSpace>& spaces, Candidate plain,
                     std::optional<Winner> stored_winner)
    : kernel(&tuned),
      reference(std::move(plain)),
      heuristic(heuristic_candidate(spaces, reference)),
      incumbent(stored_winner ? stored_winner->candidate : heuristic),
      incumbent_origin(origin_when_measured(stored_winner)),
      stored(std::move(stored_winner)),
      search(searched_spaces(tuned, spaces, reference)) {
  outlook.program_us = estimated_us(spaces);
}

void TuneState::add_trial(const Trial& trial) {
  bool ok = trial.verdict == Verdict::ok && trial.median_us > 0;
  trials_[trial.candidate.to_string()] = trial;
  search.observe(trial.candidate, ok ? trial.median_us : KernelSearch::failed);
}

void TuneState::skip(const Candidate& candidate) {
  ++lost;
  search.observe(candidate, KernelSearch::failed);
}

const Trial* TuneState::find_trial(const Candidate& candidate) const {
  auto found = trials_.find(candidate.to_string());
  return found == trials_.end() ? nullptr : &found->second;
}

double TuneState::median_of(const Candidate& candidate) const {
  const Trial* trial = find_trial(candidate);
  return trial != nullptr && trial->verdict == Verdict::ok ? trial->median_us : 0;
}

double TuneState::best_us() const {
  double best = 0;
  for (const auto& [text, trial] : trials_)
    if (trial.verdict == Verdict::ok && trial.median_us > 0 && (best == 0 || trial.median_us < best))
      best = trial.median_us;
  return best;
}

std::string TuneState::failures() const {
  std::map<Verdict, int> counts;
  std::string message;
  for (const auto& [text, trial] : trials_) {
    if (trial.verdict == Verdict::ok) continue;
    ++counts[trial.verdict];
    message = trial.message;
  }
  std::string summary;
  for (const auto& [verdict, count] : counts) summary += fmt::format("{} {}, ", count, verdict_name(verdict));
  return summary + "the last: " + message;
}

std::vector<Candidate> TuneState::challengers(std::size_t count) const {
  double limit = incumbent_us() * hopeless_ratio;
  std::vector<const Trial*> found;
  for (const auto& [text, trial] : trials_) {
    bool fast = limit == 0 || trial.median_us < limit;
    if (trial.verdict == Verdict::ok && trial.median_us > 0 && fast && !(trial.candidate == incumbent))
      found.push_back(&trial);
  }
  std::ranges::stable_sort(found, {}, [](const Trial* trial) { return trial->median_us; });
  std::vector<Candidate> best;
  for (std::size_t i = 0; i < std::min(count, found.size()); ++i) best.push_back(found[i]->candidate);
  return best;
}

void TuneState::trim_objects() {
  std::map<std::string, CompiledCandidate> kept;
  std::vector<Candidate> wanted = challengers(kept_objects);
  wanted.push_back(reference);
  wanted.push_back(incumbent);
  for (const Candidate& candidate : wanted) {
    auto node = objects.extract(candidate.to_string());
    if (!node.empty()) kept.insert(std::move(node));
  }
  objects = std::move(kept);
}

}  // namespace sylvite
