#include "lowering/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace sylvite {
namespace {

using Row = std::vector<std::string>;

std::string lined_up(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string output_types(const Plan& plan, const Launch& launch) {
  const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(launch.kernel));
  std::string text;
  for (ValueId output : kernel.body.outputs) {
    if (!text.empty()) text += " ";
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
  std::vector<Row> rows = {{"launch", "kernel", "class", "output", "name", "origin"}};
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    const Launch& launch = plan.launches[i];
    const Kernel& kernel = plan.kernels.at(static_cast<std::size_t>(launch.kernel));
    rows.push_back({std::to_string(i), kernel.id, std::string(kernel_class_name(kernel.kind)),
                    output_types(plan, launch), launch.name, launch.origin});
  }
  return text + lined_up(rows);
}

}  // namespace sylvite
