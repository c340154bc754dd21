#pragma once
// Which kernels of a symbolic plan are cases of kernels for many sizes: found once, so that at further sizes only numbers follow.

#include <memory>
#include <optional>
#include <vector>

#include "lowering/plan/symbolic_plan.h"
#include "runtime/kernel_menu.h"
#include "schedules/machine.h"

namespace sylvite {

/// Thread safety: one thread at a time.
class MatchedKernels {
 public:
  /// Of a plan that these samples and `said` make. nullopt where what `menu` has for a kernel is not told by numbers alone.
  [[nodiscard]] static std::optional<MatchedKernels> of(const std::vector<FitSymbol>& symbols,
                                                        const SymbolicPlan& plan,
                                                        const std::vector<PlanSample>& samples,
                                                        const std::vector<Extent>& said,
                                                        const KernelMenu& menu, const Machine& machine);

  /// What KernelMenu::apply would give, for SymbolicPlan::at, but for kernels that serve some of the samples: those that serve all come
  /// first.
  [[nodiscard]] std::optional<Kernel> at(std::size_t number, const SymbolValues& sizes,
                                         const Machine& machine, const IsCompiled& preferred) const;

  /// May the menu have a kernel for it where `at` gives none?
  [[nodiscard]] bool has_others(std::size_t number) const { return matches_.at(number).has_others; }
  /// What the sizes of `kernel`, an open one that `at` gave for this number, are expressions of the model's as; nullptr where it gave
  /// none such.
  [[nodiscard]] const std::vector<Extent>* numbers_of(std::size_t number, const Kernel& kernel) const;

 private:
  /// A kernel for many sizes and those at which it does the work of the plan's, as expressions of the model's.
  struct Match {
    std::shared_ptr<KernelVariants> variants;
    std::vector<Extent> sizes;
  };

  struct Matches {
    std::vector<Match> matches;  ///< in the order in which they are asked
    bool has_others = false;     ///< the menu has kernels that serve some of the samples
  };

  std::vector<Matches> matches_;  ///< per kernel of the plan
};

}  // namespace sylvite
