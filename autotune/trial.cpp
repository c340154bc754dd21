#include "autotune/trial.h"

#include <algorithm>
#include <array>

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

}  // namespace sylvite
