#include "cli/timing.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/table.h"
#include "lowering/plan/work.h"

namespace sylvite {
namespace {

double total_us(const std::vector<LaunchTime>& times) {
  double total = 0;
  for (const LaunchTime& time : times) total += time.duration_us;
  return total;
}

/// All launches of one kernel in one run.
struct KernelTime {
  std::string first_launch;
  std::int64_t launches = 0;
  double total_us = 0;
};

/// Class, and 10^9 operations and bytes a second.
std::vector<std::string> rate_cells(const Kernel& kernel, double each_us) {
  if (each_us <= 0) return {"", "", ""};
  const Work work = work_of(kernel);
  const auto rate = [&](double amount) { return fmt::format("{:.1f}", amount / each_us * 1e-3); };
  return {std::string(kernel_class_name(kernel.kind)), rate(work.operations), rate(work.bytes)};
}

}  // namespace

double timed_run(Built& built, const std::vector<HostValue>& inputs, std::vector<HostValue>* outputs) {
  if (built.room) make_room(built.program, *built.room);
  const auto time = [&](const auto& run) {
    const double start = steady_seconds();
    auto results = run();
    const double seconds = steady_seconds() - start;
    if (outputs != nullptr) outputs->assign(results.begin(), results.end());
    return seconds;
  };
  if (built.host != nullptr) return time([&] { return run_values(built, inputs); });
  std::vector<Tensor> tensors;
  tensors.reserve(inputs.size());
  for (const HostValue& input : inputs) tensors.push_back(input.tensor());
  return time([&] { return run_tensors(built, tensors); });
}

std::vector<std::vector<double>> timed_runs(const std::vector<Built*>& models,
                                            const std::vector<HostValue>& inputs, double warmup,
                                            double duration) {
  constexpr int rounds = 10;
  const auto take_turns = [&](double seconds) {
    std::vector<std::vector<double>> times(models.size());
    const double slice = seconds / rounds / static_cast<double>(models.size());
    const double start = steady_seconds();
    do {
      for (std::size_t i = 0; i < models.size(); ++i) {
        const double turn = steady_seconds();
        do {
          times[i].push_back(timed_run(*models[i], inputs));
        } while (steady_seconds() - turn < slice);
      }
    } while (steady_seconds() - start < seconds);
    return times;
  };
  (void)take_turns(warmup);
  return take_turns(duration);
}

std::vector<LaunchTime> profile_program(Program& program, const std::vector<Tensor>& inputs, int runs) {
  std::vector<std::vector<LaunchTime>> profiles(static_cast<std::size_t>(runs));
  for (auto& profile : profiles) (void)program.run(inputs, &profile);
  const auto median_of = [&](std::size_t launch, double LaunchTime::* time) {
    std::vector<double> values;
    values.reserve(profiles.size());
    for (const auto& profile : profiles) values.push_back(profile.at(launch).*time);
    std::ranges::nth_element(values, values.begin() + runs / 2);
    return values[static_cast<std::size_t>(runs / 2)];
  };
  std::vector<LaunchTime> typical = profiles.front();
  for (std::size_t i = 0; i < typical.size(); ++i) {
    typical[i].start_us = median_of(i, &LaunchTime::start_us);
    typical[i].duration_us = median_of(i, &LaunchTime::duration_us);
  }
  return typical;
}

std::string profile_table(const Plan& plan, const std::vector<LaunchTime>& times) {
  std::map<std::size_t, KernelTime> by_kernel;  // by its number in the plan
  for (const LaunchTime& time : times) {
    KernelTime& kernel = by_kernel[time.kernel];
    if (kernel.launches == 0) kernel.first_launch = time.name;
    kernel.launches += time.count;
    kernel.total_us += time.duration_us;
  }
  std::vector<std::pair<std::size_t, KernelTime>> sorted(by_kernel.begin(), by_kernel.end());
  std::ranges::sort(sorted, std::greater{}, [](const auto& each) { return each.second.total_us; });
  const double total = total_us(times);
  Table table(
      {"kernel", "class", "GFLOP/s", "GB/s", "launches", "total us", "each us", "share", "first launch"});
  for (const auto& [number, kernel] : sorted) {
    const double each_us = kernel.total_us / static_cast<double>(kernel.launches);
    std::vector<std::string> row = rate_cells(plan.kernels.at(number), each_us);
    row.insert(row.begin(), plan.kernels[number].id);
    row.insert(row.end(),
               {std::to_string(kernel.launches), time_text(kernel.total_us), time_text(each_us),
                fmt::format("{:.1f}%", total > 0 ? 100 * kernel.total_us / total : 0), kernel.first_launch});
    table.add_row(row);
  }
  return table.to_string();
}

nlohmann::json profile_json(const std::vector<LaunchTime>& times) {
  nlohmann::json list = nlohmann::json::array();
  for (const LaunchTime& time : times) {
    list.push_back({{"name", time.name},
                    {"kernel", time.kernel_id},
                    {"start_us", time.start_us},
                    {"duration_us", time.duration_us},
                    {"count", time.count}});
  }
  return list;
}

nlohmann::json work_json(const Plan& plan) {
  nlohmann::json kernels = nlohmann::json::object();
  for (const Kernel& kernel : plan.kernels) {
    const Work work = work_of(kernel);
    kernels[kernel.id] = {{"class", kernel_class_name(kernel.kind)},
                          {"operations", work.operations},
                          {"element", dtype_name(work.element)},
                          {"bytes", work.bytes},
                          {"weight_bytes", work.weight_bytes}};
  }
  return kernels;
}

}  // namespace sylvite
