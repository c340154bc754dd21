#include "runtime/profile.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace sylvite {

std::string chrome_trace(const std::vector<std::vector<LaunchTime>>& runs) {
  nlohmann::json events = nlohmann::json::array();
  double run_start = 0;
  for (const std::vector<LaunchTime>& run : runs) {
    double run_end = run_start;
    for (const LaunchTime& launch : run) {
      events.push_back({{"name", launch.name},
                        {"cat", "kernel"},
                        {"ph", "X"},
                        {"ts", run_start + launch.start_us},
                        {"dur", launch.duration_us},
                        {"pid", 1},
                        {"tid", 1},
                        {"args", {{"kernel", launch.kernel_id}}}});
      run_end = run_start + launch.start_us + launch.duration_us;
    }
    run_start = run_end;
  }
  return json_text(nlohmann::json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}, 1);
}

}  // namespace sylvite
