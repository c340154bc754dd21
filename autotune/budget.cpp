#include "autotune/budget.h"

#include <algorithm>

namespace sylvite {

namespace {

constexpr double gain_decay = 0.6;
constexpr double least_gain = 1e-12;  // nothing is ever hopeless, and nothing is tried for ever
constexpr double least_batch_seconds = 0.05;

}  // namespace

void update_outlook(TaskOutlook& outlook, double before_us, double after_us, double seconds) {
  double gained = before_us > 0 ? std::max(0.0, 1 - after_us / before_us) : 0;
  outlook.gain = std::max({gained, outlook.gain * gain_decay, least_gain});
  outlook.batch_seconds = std::max(least_batch_seconds, (outlook.batch_seconds + seconds) / 2);
}

std::size_t choose_task(const std::vector<TaskOutlook>& outlooks) {
  std::size_t best = outlooks.size();
  double best_value = -1;
  for (std::size_t i = 0; i < outlooks.size(); ++i) {
    const TaskOutlook& outlook = outlooks[i];
    double value = outlook.program_us * outlook.gain / outlook.batch_seconds;
    if (outlook.open && value > best_value) {
      best_value = value;
      best = i;
    }
  }
  return best;
}

}  // namespace sylvite
