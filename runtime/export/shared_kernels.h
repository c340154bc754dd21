#pragma once
// Kernels that the programs of one library share: those that serve a range of sizes in a process, too.

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/export/join_plans.h"
#include "runtime/kernel_menu.h"

namespace sylvite {

/// Thread safety: one thread at a time.
class SharedKernels {
 public:
  /// `lower` gives the model's plan at any sizes, with kernels for these alone. May throw Error.
  SharedKernels(const ModelSizes& model, const Machine& machine,
                std::function<std::shared_ptr<const Plan>(const Sizes&)> lower)
      : model_(model), machine_(machine), lower_(std::move(lower)) {}

  /// Finds kernels for these sizes, at which the model has this plan, and others: they come first in `made`.
  void find(const Sizes& sizes, const std::shared_ptr<const Plan>& plan);
  /// Kernels that were found get variants, half as many in all, where these should make the model faster at the sizes of such plans.
  void vary(const std::vector<std::shared_ptr<const Plan>>& plans);
  /// How much longer the model should take at the sizes of `plan` with the variants for those of `other` than with its own; 1 where
  /// there is no estimate. REQUIRES plans with the same launches.
  [[nodiscard]] double loss(const std::shared_ptr<const Plan>& plan,
                            const std::shared_ptr<const Plan>& other);

  OpenKernels made;

 private:
  const ModelSizes& model_;
  const Machine& machine_;
  std::function<std::shared_ptr<const Plan>(const Sizes&)> lower_;
  KernelMenu menu_;
};

}  // namespace sylvite
