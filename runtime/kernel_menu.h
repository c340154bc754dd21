#pragma once
// The kernels of a model whose sizes change: those that serve a range of sizes, found as plans at different sizes come.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/model_sizes.h"
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
  /// Both, and where sizes like these are new it learns from a plan at the sizes beside them, too: `lower` makes one.
  /// What cannot be lowered there has kernels for these sizes alone.
  [[nodiscard]] std::shared_ptr<const Plan> serve(
      const ModelSizes& model, const Sizes& sizes, const std::shared_ptr<const Plan>& plan,
      const Machine& machine, const std::function<std::shared_ptr<const Plan>(const Sizes&)>& lower);

 private:
  /// A kernel at the sizes of one plan, that no open kernel served.
  struct Seen {
    Kernel kernel;
    std::int64_t plan = 0;  ///< number of the plan
  };
  /// Kernels of one skeleton.
  struct Entry {
    std::vector<Seen> seen;  ///< of the latest plans
    std::vector<Kernel> open;
    std::map<std::string, std::int64_t>
        refused;  ///< texts of those that would be, and the plan that asked last

    void compare(const Kernel& kernel, std::int64_t plan, const Machine& machine);
    void forget_before(std::int64_t plan);
  };
  std::int64_t plans_ = 0;                          ///< learned from so far
  std::unordered_map<std::string, Entry> entries_;  ///< by skeleton
  std::set<Sizes> classes_;                         ///< of sizes that were met: the least of each
};

}  // namespace sylvite
