#include "autotune/standing.h"

#include <fmt/format.h>

#include <algorithm>

#include "autotune/race.h"

namespace sylvite {
namespace {

/// Times of other candidates over that of one, by their text.
using Ratios = std::map<std::string, double>;

/// The least of the times that are known; 0 without one.
double own_time(const std::string& chosen, double chosen_us, const std::vector<Trial>& trials) {
  const auto own =
      std::ranges::find_if(trials, [&](const Trial& trial) { return trial.candidate.to_string() == chosen; });
  if (own == trials.end() || own->median_us <= 0) return chosen_us;
  return chosen_us > 0 ? std::min(chosen_us, own->median_us) : own->median_us;
}

void add_trials(Ratios& ratios, const std::string& chosen, double own_us, const std::vector<Trial>& trials) {
  if (own_us <= 0) return;
  for (const Trial& trial : trials)
    if (trial.verdict == Verdict::ok && trial.median_us > 0 && trial.candidate.to_string() != chosen)
      ratios[trial.candidate.to_string()] = trial.median_us / own_us;
}

void add_races(Ratios& ratios, const std::string& chosen, const std::vector<Race>& races, RaceScope scope) {
  for (const Race& race : races) {
    if (race.scope != scope) continue;
    const std::string incumbent = race.incumbent.to_string();
    const std::string challenger = race.challenger.to_string();
    if (incumbent == chosen)
      ratios[challenger] = compare_samples(race.incumbent_us, race.challenger_us).ratio;
    else if (challenger == chosen)
      ratios[incumbent] = compare_samples(race.challenger_us, race.incumbent_us).ratio;
  }
}

}  // namespace

Standing standing_of(const Candidate& chosen, double chosen_us, const Candidate& fallback,
                     const std::vector<Trial>& trials, const std::vector<Race>& races) {
  const std::string text = chosen.to_string();
  Ratios ratios;
  add_trials(ratios, text, own_time(text, chosen_us, trials), trials);
  add_races(ratios, text, races, RaceScope::kernel);
  add_races(ratios, text, races, RaceScope::model);
  Standing standing;
  standing.tried = static_cast<int>(trials.size());
  standing.failed = static_cast<int>(
      std::ranges::count_if(trials, [](const Trial& trial) { return trial.verdict != Verdict::ok; }));
  for (const auto& [candidate, ratio] : ratios)
    if (standing.next_ratio == 0 || ratio < standing.next_ratio) standing.next_ratio = ratio;
  if (const auto other = ratios.find(fallback.to_string()); other != ratios.end())
    standing.default_ratio = other->second;
  if (chosen == fallback) standing.default_ratio = 1;
  return standing;
}

std::string describe(const Standing& standing) {
  if (standing.tried == 0) return "";
  std::string text = standing.tried == 1 ? "nothing else was tried"
                                         : fmt::format("{} others were tried", standing.tried - 1);
  if (standing.failed > 0) text += fmt::format(", {} failed", standing.failed);
  if (standing.next_ratio > 0)
    text += fmt::format("; the next takes {:.3f} of its time", standing.next_ratio);
  if (standing.default_ratio > 0 && standing.default_ratio != 1)
    text += fmt::format("; the default schedule takes {:.3f}", standing.default_ratio);
  return text;
}

}  // namespace sylvite
