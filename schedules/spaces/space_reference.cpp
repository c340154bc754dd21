#include <algorithm>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "schedules/spaces/spaces.h"

// The reference: the generic form with every folding stage computed whole. No vectors, no threads; always
// legal.

namespace sylvite {

std::int64_t get(const Point& point, const std::string& name) {
  const auto found = point.find(name);
  if (found == point.end()) throw InternalError("the point lacks '{}'", name);
  return found->second;
}

void ScheduleWriter::add_line(const std::string& line) {
  Schedule parsed = Schedule::parse(line);
  for (Decision& decision : parsed.decisions) schedule_.decisions.push_back(std::move(decision));
}

std::string ScheduleWriter::parallelize(const std::string& stage, const std::vector<std::string>& loops) {
  std::string task = loops.at(0);
  for (std::size_t i = 1; i < loops.size(); ++i) {
    const std::string fused = fmt::format("task{}", i);
    add("{}.fuse({}, {}, {});", stage, task, loops[i], fused);
    task = fused;
  }
  add("{}.parallel({});", stage, task);
  return task;
}

void write_stream(ScheduleWriter& writer, const Kernel& kernel, ValueId weight, const std::string& stage,
                  const std::string& loop, std::int64_t distance) {
  const auto& inputs = kernel.body.inputs;
  const auto number = std::find(inputs.begin(), inputs.end(), weight) - inputs.begin();
  writer.add("{}.stream_ahead({}, in{}, {});", stage, loop, number, distance);
}

Candidate reference_candidate(const Kernel& kernel) {
  ScheduleWriter writer;
  const Algorithm algorithm = build_algorithm(kernel, Form{});
  for (const auto& [name, func] : algorithm.stages) {
    const bool is_read_often = name.ends_with("_steps");
    if (func.has_update_definition() || is_read_often) writer.add("{}.compute_root();", name);
  }
  return {Form{}, writer.take()};
}

const Space reference_space = {
    .name = "reference",
    .refuses = [](const Kernel&, const Machine&) { return std::string(); },
    .parameters = [](const Kernel&, const Machine&) { return std::vector<Parameter>(); },
    .heuristic = [](const Kernel&, const Machine&) { return Point(); },
    .at = [](const Kernel& kernel, const Machine&, const Point&) { return reference_candidate(kernel); },
    .cost = nullptr,
};

}  // namespace sylvite
