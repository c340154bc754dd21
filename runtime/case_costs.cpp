#include "runtime/case_costs.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sylvite {

std::optional<double> CaseCosts::of(const std::string& space, const Point& point) {
  const auto [found, is_new] = bound_.try_emplace(space);
  if (is_new) {
    const auto row = std::ranges::find(space_table(), space, &Space::name);
    if (row == space_table().end()) return std::nullopt;
    Binding binding = row->bind(fixed_, machine_);
    if (binding.refusal.empty()) found->second = std::move(binding.space);
  }
  const std::optional<BoundSpace>& bound = found->second;
  const bool has_point = bound && bound->cost && bound->parameters.size() == point.size();
  return has_point ? std::optional(bound->cost(point)) : std::nullopt;
}

std::optional<BoundSpace> first_space(const Kernel& kernel, const Machine& machine) {
  std::vector<BoundSpace> spaces = spaces_for(kernel, machine);
  if (spaces.empty() || !spaces.front().cost) return std::nullopt;
  return std::move(spaces.front());
}

}  // namespace sylvite
