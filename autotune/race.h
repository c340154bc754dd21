#pragma once
// Who wins an interleaved race.

#include <cstddef>
#include <vector>

namespace sylvite {

/// One contestant's samples; sample i of all contestants was taken at about the same time.
struct RaceEntry {
  std::vector<double> samples_us;  ///< empty: out of the race
  std::size_t simplicity = 0;      ///< length of the candidate's text; shorter is simpler
};

/// How `challenger` fares against `incumbent`: the median of the pairwise ratios of their samples, and the
/// band around 1 within which it means nothing: 0.5%, or more where the ratios scatter.
struct RaceVerdict {
  double ratio = 1;  ///< challenger / incumbent; below 1 is faster
  double band = 0;
  [[nodiscard]] bool won() const { return ratio < 1 - band; }
  [[nodiscard]] bool lost() const { return ratio > 1 + band; }
  /// Apart by less than 5%: one in five such leads of kernels of microseconds does not repeat.
  [[nodiscard]] bool is_narrow() const { return (won() && ratio > 0.95) || (lost() && ratio < 1 / 0.95); }
};
[[nodiscard]] RaceVerdict compare_samples(const std::vector<double>& incumbent,
                                          const std::vector<double>& challenger);
/// What two races of the same two say together: the smaller lead, none where they disagree, and the wider band. Who
/// leads must lead in both.
[[nodiscard]] RaceVerdict combine(const RaceVerdict& first, const RaceVerdict& second);

/// Index of the winner. Entry 0 is the incumbent, which stays unless a challenger clearly beats it; among
/// challengers that do, those within the band of the fastest tie, and the simplest of them wins (then the
/// earliest).
[[nodiscard]] std::size_t decide_race(const std::vector<RaceEntry>& entries);

}  // namespace sylvite
