#pragma once
// The kernels of a model whose sizes change: those that serve a range of sizes, found as plans at different sizes come.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lowering/plan/plan.h"
#include "schedules/machine.h"

namespace sylvite {

/// Thread safety: one thread at a time.
class KernelMenu {
 public:
  /// Looks at a plan, so that kernels which two plans have at different sizes are open. Compiles nothing.
  void learn(const Plan& plan, const Machine& machine);
  /// The plan with open kernels wherever it has cases of them.
  [[nodiscard]] std::shared_ptr<const Plan> apply(const std::shared_ptr<const Plan>& plan) const;

 private:
  /// Kernels of one skeleton.
  struct Entry {
    std::vector<Kernel> seen;  ///< of plans so far, at their sizes, that no open kernel served
    std::vector<Kernel> open;
    std::vector<std::string> refused;  ///< texts of those that would be

    void compare(const Kernel& kernel, const Machine& machine);
  };
  std::unordered_map<std::string, Entry> entries_;  ///< by skeleton
};

}  // namespace sylvite
