#pragma once
// How the wall-clock budget is spread over kernels: always to the one where the next batch of trials is
// expected to save the most time of the whole program, per second spent.

#include <cstddef>
#include <vector>

namespace sylvite {

/// What is known of one kernel's search.
struct TaskOutlook {
  double program_us = 0;     ///< launches x current best median: its share of the program's time
  double gain = 0.5;         ///< expected relative improvement of the next batch
  double batch_seconds = 1;  ///< what a batch costs
  bool open = true;          ///< false when its search is exhausted or impossible
};

/// The outlook after a batch that took `seconds` and brought the best median from `before` to `after`: the
/// expected gain decays, unless the batch itself brought more.
void update_outlook(TaskOutlook& outlook, double before_us, double after_us, double seconds);

/// Index of the task to work on next; `outlooks.size()` when none is open.
[[nodiscard]] std::size_t choose_task(const std::vector<TaskOutlook>& outlooks);

}  // namespace sylvite
