#include "autotune/confirm.h"

#include <numeric>

namespace sylvite {

namespace {

void add_run(ModelTimes& times, const std::vector<double>& kernel_us) {
  times.kernel_us.resize(kernel_us.size());
  for (std::size_t i = 0; i < kernel_us.size(); ++i) times.kernel_us[i].push_back(kernel_us[i]);
  times.run_us.push_back(std::accumulate(kernel_us.begin(), kernel_us.end(), 0.0));
}

}  // namespace

std::pair<ModelTimes, ModelTimes> race_programs(const RunProgram& incumbent, const RunProgram& challenger,
                                                double deadline, const std::function<double()>& now) {
  std::pair<ModelTimes, ModelTimes> times;
  static_cast<void>(incumbent());
  static_cast<void>(challenger());
  for (bool incumbent_first = true; now() < deadline; incumbent_first = !incumbent_first) {
    if (incumbent_first) add_run(times.first, incumbent());
    add_run(times.second, challenger());
    if (!incumbent_first) add_run(times.first, incumbent());
  }
  return times;
}

std::vector<bool> holds_in_model(const ModelTimes& incumbent, const ModelTimes& challenger) {
  std::vector<bool> holds;
  holds.reserve(incumbent.kernel_us.size());
  for (std::size_t i = 0; i < incumbent.kernel_us.size(); ++i)
    holds.push_back(compare_samples(incumbent.kernel_us[i], challenger.kernel_us[i]).ratio < 1);
  return holds;
}

}  // namespace sylvite
