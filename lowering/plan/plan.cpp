#include "lowering/plan/plan.h"

#include <fmt/format.h>

#include "base/table.h"

namespace sylvite {
namespace {

std::string output_types(const Plan& plan, const Launch& launch) {
  const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(launch.kernel));
  std::string text;
  for (ValueId output : kernel.body.outputs) {
    if (!text.empty()) text += ' ';
    text += kernel.body.type(output).to_string();
  }
  return text;
}

double megabytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::int64_t weights = 0;
  for (const Tensor& weight : plan.weights) weights += weight.byte_size();
  std::string text = fmt::format(
      "plan {}: {} launches of {} kernels; arena {:.2f} MB for {:.2f} MB of values; weights {:.2f} MB\n",
      plan.name, plan.launches.size(), plan.kernels.size(), megabytes(plan.arena_bytes),
      megabytes(plan.sum_of_values_bytes), megabytes(weights));
  for (const PlanLoop& loop : plan.loops)
    text += fmt::format("launches {} to {} run {} times\n", loop.first, loop.end - 1, loop.trips);
  Table table({"launch", "kernel", "class", "output", "name", "reason"});
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(launch.kernel));
    table.add_row({std::to_string(i), kernel.id, std::string(kernel_class_name(kernel.kind)),
                   output_types(plan, launch), launch.name, launch.reason});
  }
  return text + table.to_string();
}

}  // namespace sylvite
