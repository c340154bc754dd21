#pragma once
// How spaces write schedules: in the text form, a line at a time. Internal to schedules/.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lowering/plan/kernel.h"
#include "schedules/schedule.h"

namespace sylvite {

/// Appends decisions to a schedule, one statement at a time.
class ScheduleWriter {
 public:
  /// Parses one line of the text form, so that spaces read like Halide.
  template <typename... Parts>
  void add(fmt::format_string<Parts...> format, Parts&&... parts) {
    add_line(fmt::format(format, std::forward<Parts>(parts)...));
  }
  void add_line(const std::string& line);
  [[nodiscard]] Schedule take() { return std::move(schedule_); }
  /// Makes one parallel loop of a stage's loops, the innermost first; its name. Those beyond the first `together` are parallel
  /// loops around it. REQUIRES loops.
  std::string parallelize(const std::string& stage, const std::vector<std::string>& loops,
                          std::size_t together = SIZE_MAX);

 private:
  Schedule schedule_;
};

/// How many loops, of `tiles` and then of dims of batches, ScheduleWriter::parallelize may put together where each task makes one
/// entry of the batches: in a loop of three dims and more Halide's bounds take the whole of an open one for each task.
[[nodiscard]] std::size_t loops_of_entries(const Kernel& kernel, std::size_t tiles);

/// A stage that is made inside these loops of its reader has one iteration of each. Only of open kernels: the compiler
/// sees it where extents are numbers.
void write_single(ScheduleWriter& writer, const Kernel& kernel, const std::string& stage,
                  const std::vector<std::string>& loops);

/// `weight`, an input of the kernel, is fetched ahead: the directive of stream_ahead.h.
void write_stream(ScheduleWriter& writer, const Kernel& kernel, ValueId weight, const std::string& stage,
                  const std::string& loop, std::int64_t distance);

}  // namespace sylvite
