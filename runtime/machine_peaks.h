#pragma once
// What the machine can do at most: measured once, and kept.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedules/machine.h"
#include "sylvite/types.h"

namespace sylvite {

/// Of all threads of the machine together, each rate the best of several turns. Of the CPU.
struct MachinePeaks {
  struct Reading {
    std::int64_t bytes = 0;  ///< of all that is read again and again
    double rate = 0;         ///< bytes a second
    bool operator==(const Reading&) const = default;
  };
  std::string cpu;
  int threads = 1;
  std::map<DType, double>
      operations;      ///< a second, by what is multiplied: f32, and bf16 and i8 where it has instructions
  double l2_rate = 0;  ///< bytes a second
  std::vector<Reading> readings;  ///< with rising bytes; at least one

  bool operator==(const MachinePeaks&) const = default;
};

/// Takes about two seconds.
[[nodiscard]] MachinePeaks measure_peaks(const Machine& machine);

/// Those of the machine that the folder keeps; else measured now, and kept there. With `again` they are measured in any
/// case, and the better of each rate is kept: what else the machine does makes rates smaller, never larger. A folder that
/// is "" or cannot be written keeps nothing.
[[nodiscard]] MachinePeaks peaks_of(const Machine& machine, const std::string& folder, bool again = false);

/// The better of each rate. REQUIRES two of one machine.
[[nodiscard]] MachinePeaks better_of(const MachinePeaks& one, const MachinePeaks& other);

/// What peaks_of keeps, as JSON; and back: nothing when it is damaged.
[[nodiscard]] std::string peaks_text(const MachinePeaks& peaks);
[[nodiscard]] std::optional<MachinePeaks> read_peaks(const std::string& text);

}  // namespace sylvite
