#pragma once
// Which variants of its open kernels make a model fast at all sizes of its ranges: few, chosen together, by estimates.

#include <cstddef>
#include <functional>
#include <vector>

#include "lowering/plan/kernel.h"
#include "schedules/machine.h"

namespace sylvite {

/// An open kernel, and what a model runs of it at several sizes.
struct VariedKernel {
  struct Case {
    Kernel kernel;                   ///< of fixed sizes
    std::vector<std::size_t> plans;  ///< numbers of those that launch it, each as often as it does
  };
  std::vector<Kernel> variants;  ///< that it has, the first first
  std::vector<Case> cases;
};

/// A further variant, which differs from the first in its hints alone, or is for larger images.
struct ChosenVariant {
  std::size_t kernel = 0;  ///< number of the one that it is of
  Kernel open;
};

/// Up to `most` variants, the most useful first. One is worth how much less time the model is estimated to take for it, as a share of
/// what kernels of fixed sizes would take, in the mean over `plans` sizes; at least a thousandth. A kernel gets six at most.
/// Kernels without estimates get none. `is_over` ends it early.
[[nodiscard]] std::vector<ChosenVariant> choose_variants(const std::vector<VariedKernel>& kernels,
                                                         std::size_t plans, std::size_t most,
                                                         const Machine& machine,
                                                         const std::function<bool()>& is_over);

}  // namespace sylvite
