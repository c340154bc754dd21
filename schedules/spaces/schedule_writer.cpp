#include "schedules/spaces/schedule_writer.h"

#include <algorithm>

namespace sylvite {

void ScheduleWriter::add_line(const std::string& line) {
  Schedule parsed = Schedule::parse(line);
  for (Decision& decision : parsed.decisions) schedule_.decisions.push_back(std::move(decision));
}

std::string ScheduleWriter::parallelize(const std::string& stage, const std::vector<std::string>& loops,
                                        std::size_t together) {
  std::string task = loops.at(0);
  const std::size_t inner = std::min(loops.size(), together);
  for (std::size_t i = 1; i < inner; ++i) {
    const std::string fused = fmt::format("task{}", i);
    add("{}.fuse({}, {}, {});", stage, task, loops[i], fused);
    task = fused;
  }
  add("{}.parallel({});", stage, task);
  for (std::size_t i = inner; i < loops.size(); ++i) add("{}.parallel({});", stage, loops[i]);
  return task;
}

std::size_t loops_of_entries(const Kernel& kernel, std::size_t tiles) {
  constexpr std::size_t most_dims = 2;
  return kernel.open ? tiles + most_dims : SIZE_MAX;
}

void write_single(ScheduleWriter& writer, const Kernel& kernel, const std::string& stage,
                  const std::vector<std::string>& loops) {
  if (!kernel.open) return;
  for (const std::string& loop : loops) writer.add("{}.bound_extent({}, 1);", stage, loop);
}

void write_stream(ScheduleWriter& writer, const Kernel& kernel, ValueId weight, const std::string& stage,
                  const std::string& loop, std::int64_t distance) {
  const auto& inputs = kernel.body.inputs;
  const auto number = std::find(inputs.begin(), inputs.end(), weight) - inputs.begin();
  writer.add("{}.stream_ahead({}, in{}, {});", stage, loop, number, distance);
}

}  // namespace sylvite
