#include "autotune/race.h"

#include <algorithm>

#include "autotune/trial.h"

namespace sylvite {

namespace {

/// Leads of 1% to 2% repeat on a quiet machine, so the scatter decides, not a wide fixed band.
constexpr double least_band = 0.005;

}  // namespace

RaceVerdict compare_samples(const std::vector<double>& incumbent, const std::vector<double>& challenger) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(incumbent.size(), challenger.size()); ++i)
    if (incumbent[i] > 0 && challenger[i] > 0) ratios.push_back(challenger[i] / incumbent[i]);
  if (ratios.empty()) return {1, least_band};
  RaceVerdict verdict;
  verdict.ratio = median(ratios);
  verdict.band = std::max(least_band, median_band(ratios));  // three errors: several challengers race at once
  return verdict;
}

RaceVerdict combine(const RaceVerdict& first, const RaceVerdict& second) {
  const auto [low, high] = std::minmax(first.ratio, second.ratio);
  return {std::clamp(1.0, low, high), std::max(first.band, second.band)};
}

std::size_t decide_race(const std::vector<RaceEntry>& entries) {
  const RaceEntry& incumbent = entries.at(0);
  std::size_t fastest = 0;
  double best_ratio = 1;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].samples_us.empty()) continue;
    if (incumbent.samples_us.empty()) {  // out: any challenger is better, the one with the best median most
      if (fastest == 0 || median(entries[i].samples_us) < median(entries[fastest].samples_us)) fastest = i;
      continue;
    }
    RaceVerdict verdict = compare_samples(incumbent.samples_us, entries[i].samples_us);
    if (verdict.won() && verdict.ratio < best_ratio) {
      best_ratio = verdict.ratio;
      fastest = i;
    }
  }
  std::size_t winner = fastest;
  for (std::size_t i = 1; fastest != 0 && i < entries.size(); ++i) {
    bool beats_incumbent =
        incumbent.samples_us.empty() || compare_samples(incumbent.samples_us, entries[i].samples_us).won();
    if (!entries[i].samples_us.empty() && beats_incumbent &&
        entries[i].simplicity < entries[winner].simplicity &&
        !compare_samples(entries[fastest].samples_us, entries[i].samples_us).lost()) {
      winner = i;
    }
  }
  return winner;
}

}  // namespace sylvite
