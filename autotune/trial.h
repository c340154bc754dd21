#pragma once
// What happens to candidates: trials, their verdicts, and the winners chosen from them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/candidate.h"

namespace sylvite {

/// How a trial ended. Names are persistent.
enum class Verdict { ok, compile_error, compile_timeout, run_crash, run_timeout, wrong_result, noisy };
[[nodiscard]] std::string_view verdict_name(Verdict verdict);
[[nodiscard]] std::optional<Verdict> find_verdict(std::string_view name);  ///< nothing for an unknown name

/// What happened to a candidate on real hardware. Every trial is stored, failures too.
struct Trial {
  std::string kernel_id;
  Candidate candidate;
  Verdict verdict = Verdict::ok;
  std::vector<double> samples_us;  ///< microseconds per call
  double median_us = 0;
  double error = 0;     ///< against the reference schedule, see autotune/verify.h; <= 1 passes
  std::string message;  ///< compiler or crash message
  double compile_seconds = 0;
};

/// Where a winner came from; persistent. `untried`: the heuristic choice, the budget ended before it was
/// measured.
inline constexpr std::string_view origin_heuristic = "heuristic";
inline constexpr std::string_view origin_search = "search";
inline constexpr std::string_view origin_reference = "reference";  ///< nothing else passed the check
inline constexpr std::string_view origin_untried = "untried";
inline constexpr std::string_view origin_pinned = "pinned";  ///< by a person; no search takes its place

struct Winner {
  Candidate candidate;
  double median_us = 0;
  double error = 0;
  std::string origin;         ///< one of the names above
  double budget_seconds = 0;  ///< budget of the search that chose it; a search with no more budget reuses it
};

/// How candidates of one kernel are timed.
struct Timing {
  int threads = 1;
  int samples = 5;         ///< per candidate
  double sample_us = 200;  ///< a sample repeats the call until it takes this long
  double seconds = 5;      ///< timing of all candidates stops after this long, with fewer samples
};

/// The middle sample; the mean of the middle two of an even count; 0 when empty.
[[nodiscard]] double median(std::vector<double> samples);
/// The standard deviation of normal samples around their median, by the median of the deviations, which outliers do not
/// move.
[[nodiscard]] double robust_deviation(const std::vector<double>& samples);
/// Three standard errors of the median. One is 1.25 standard deviations / sqrt(n) for normal samples.
[[nodiscard]] double median_band(const std::vector<double>& samples);

}  // namespace sylvite
