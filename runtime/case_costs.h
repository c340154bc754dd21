#pragma once
// What schedules that were chosen for an open kernel should take at the sizes of one of its cases.

#include <map>
#include <optional>
#include <string>

#include "lowering/plan/kernel.h"
#include "schedules/machine.h"
#include "schedules/space.h"

namespace sylvite {

/// The estimates of one kernel of fixed sizes, by spaces of the CPU; each is bound once. The kernel and the machine must outlive it.
/// Thread safety: one thread at a time.
class CaseCosts {
 public:
  CaseCosts(const Kernel& fixed, const Machine& machine) : fixed_(fixed), machine_(machine) {}

  /// Seconds at a point of the space of this name; nullopt where it has no such schedule, or there is no estimate.
  [[nodiscard]] std::optional<double> of(const std::string& space, const Point& point);
  /// The same of what `other` chooses, where there is one.
  [[nodiscard]] std::optional<double> of(const std::optional<BoundSpace>& other) {
    return other ? of(other->name, other->heuristic) : std::nullopt;
  }

 private:
  const Kernel& fixed_;
  const Machine& machine_;
  std::map<std::string, std::optional<BoundSpace>> bound_;  ///< by names of spaces
};

/// What takes a kernel by default, where it has an estimate.
[[nodiscard]] std::optional<BoundSpace> first_space(const Kernel& kernel, const Machine& machine);

}  // namespace sylvite
