#pragma once
// Where the time of a run goes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sylvite {

/// Time of one launch in one run; in a loop of all its trips, as if they were one after another.
struct LaunchTime {
  std::string name;        ///< Launch::name
  std::size_t kernel = 0;  ///< index into Plan::kernels
  std::string kernel_id;   ///< its Kernel::id, which cases of one open kernel share
  double start_us = 0;     ///< since the start of the run
  double duration_us = 0;
  std::int64_t count = 1;  ///< how often it was made
};

/// The runs one after another on one track, as JSON that chrome://tracing and Perfetto read.
[[nodiscard]] std::string chrome_trace(const std::vector<std::vector<LaunchTime>>& runs);

}  // namespace sylvite
