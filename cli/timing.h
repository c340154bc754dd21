#pragma once
// Timing whole runs of a program.

#include <string>
#include <vector>

#include "cli/output.h"

namespace sylvite {

/// Wall-clock seconds of one run, host steps included; `outputs`, if given, gets its outputs. Of a model that is
/// all compiled, the time of run_tensors.
[[nodiscard]] double timed_run(Built& built, const std::vector<HostValue>& inputs,
                               std::vector<HostValue>* outputs = nullptr);

/// Runs for `warmup` seconds untimed, then for `duration` seconds; at least one run of each. Several models
/// take turns of a tenth of their time, so that they may be compared whatever else the machine does. One list
/// per model.
[[nodiscard]] std::vector<std::vector<double>> timed_runs(const std::vector<Built*>& models,
                                                          const std::vector<HostValue>& inputs, double warmup,
                                                          double duration);

/// Launch times of a typical run: of each launch the medians over several runs, so that one interruption does
/// not show.
[[nodiscard]] std::vector<LaunchTime> profile_program(Program& program, const std::vector<Tensor>& inputs,
                                                      int runs = 21);

/// A table of launches grouped by kernel, slowest first, with their share of the run and what work.h counts a
/// second.
[[nodiscard]] std::string profile_table(const Plan& plan, const std::vector<LaunchTime>& times);

/// The keys `profile` and `kernels` of the report of docs/formats.md: launches in order, and by id what each kernel
/// of the plan computes and moves in one launch.
[[nodiscard]] nlohmann::json profile_json(const std::vector<LaunchTime>& times);
[[nodiscard]] nlohmann::json work_json(const Plan& plan);

}  // namespace sylvite
