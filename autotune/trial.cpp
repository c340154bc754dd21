#include "autotune/trial.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sylvite {

namespace {

/// In the order of Verdict.
constexpr std::array<std::string_view, 7> verdict_names = {
    "ok", "compile_error", "compile_timeout", "run_crash", "run_timeout", "wrong_result", "noisy"};

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  return verdict_names.at(static_cast<std::size_t>(verdict));
}

std::optional<Verdict> find_verdict(std::string_view name) {
  const auto* found = std::find(verdict_names.begin(), verdict_names.end(), name);
  if (found == verdict_names.end()) return std::nullopt;
  return static_cast<Verdict>(found - verdict_names.begin());
}

double median(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  std::size_t middle = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
}

double robust_deviation(const std::vector<double>& samples) {
  constexpr double normal_deviations = 1.48;  // a standard deviation in median deviations
  const double middle = median(samples);
  std::vector<double> deviations;
  deviations.reserve(samples.size());
  for (const double sample : samples) deviations.push_back(std::abs(sample - middle));
  return normal_deviations * median(deviations);
}

double median_band(const std::vector<double>& samples) {
  return 3 * 1.25 * robust_deviation(samples) / std::sqrt(static_cast<double>(samples.size()));
}

}  // namespace sylvite
