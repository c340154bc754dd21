#pragma once
// A plan whose numbers are expressions of a model's sizes, found by comparing plans that were lowered at different sizes: no
// pass of lowering needs to know of symbols.

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lowering/plan/extent_fit.h"
#include "lowering/plan/fitted_table.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/size_decisions.h"

namespace sylvite {

/// A model's plan at these sizes.
struct PlanSample {
  Dims sizes;
  std::shared_ptr<const Plan> plan;
  SizeFacts facts = {};  ///< of its import
};

[[nodiscard]] std::vector<Dims> sizes_of(const std::vector<PlanSample>& samples);

/// Kernel `number` of a symbolic plan at these sizes, where another than the plan's own is to run; else nullopt.
using KernelAt = std::function<std::optional<Kernel>(std::size_t number, const SymbolValues& sizes)>;

/// Thread safety: const use only.
class SymbolicPlan {
 public:
  /// nullopt where the samples are too few (see ExtentFit), differ in more than numbers, or have a number that is no
  /// polynomial of the sizes. Weights are equal, or the first bytes of the longest, or tables of one rule (size_table.h).
  /// REQUIRES a sample at least, and equal decisions_text of all. `said`: expressions that the model itself has.
  [[nodiscard]] static std::optional<SymbolicPlan> of(const std::vector<FitSymbol>& symbols,
                                                      const std::vector<PlanSample>& samples,
                                                      const std::vector<Extent>& said = {});

  /// The plan at these sizes, verified, with places as lower() gives them; nullopt where there is none, as where an import would
  /// decide something else. Whether the model has this plan there is else for the caller to know: between the sizes of the samples
  /// it has.
  [[nodiscard]] std::optional<Plan> at(const Dims& sizes, bool reuse_memory,
                                       const KernelAt& kernel_at = nullptr) const;
  /// Which kernel a launch of each sample runs, by the number of the launch.
  [[nodiscard]] std::size_t kernel_of(std::size_t launch) const {
    return static_cast<std::size_t>(plan_.launches.at(launch).kernel);
  }
  [[nodiscard]] std::size_t kernel_count() const { return kernels_.size(); }
  /// The plan with symbols in the types of its buffers and ports; its kernels, weights and places are those of the first sample.
  [[nodiscard]] const Plan& with_symbols() const { return plan_; }
  /// Where a buffer begins in the one that it is an alias of.
  [[nodiscard]] const Extent& alias_offset(std::size_t buffer) const {
    return buffers_.at(buffer).alias_offset;
  }
  /// Have all samples the same kernel?
  [[nodiscard]] bool is_fixed(std::size_t kernel) const { return !kernels_.at(kernel).body; }
  /// What in a kernel is no number: where all have the same values, it is the same kernel.
  [[nodiscard]] std::set<Extent> expressions_of(std::size_t kernel) const;
  /// The first weight that is the same tensor at all sizes.
  [[nodiscard]] std::size_t first_of(std::size_t weight) const {
    return weights_.at(weight).same_as.value_or(weight);
  }
  /// Is it another tensor at other sizes? See weight_at.
  [[nodiscard]] bool is_table(std::size_t weight) const;
  [[nodiscard]] Tensor weight_at(std::size_t weight, const SymbolValues& sizes) const;
  /// Numbers by the names of symbols.
  [[nodiscard]] SymbolValues named(const Dims& sizes) const;
  [[nodiscard]] std::size_t input_count() const { return plan_.inputs.size(); }
  /// Are the plan's inputs of these dims at these sizes?
  [[nodiscard]] bool takes(const std::vector<Dims>& inputs, const Dims& sizes) const;
  /// Would an import at these sizes decide as those of the samples did?
  [[nodiscard]] bool decides_alike(const Dims& sizes) const;

 private:
  struct SymbolicKernel {
    std::optional<Graph> body;  ///< with symbols; none where all samples have the same kernel
    std::vector<bool> input_is_weight;
  };
  struct SymbolicBuffer {
    Extent alias_offset;
    Extent stride;
    Extent phase;
    Extent period;
  };
  struct SymbolicWeight {
    std::vector<Extent> dims;
    std::optional<FittedTable> table;    ///< none: it is the first bytes of the longest of the samples
    std::optional<std::size_t> same_as;  ///< instead, number of one before it
  };
  class Joiner;
  class Maker;

  std::vector<std::string> names_;
  Plan plan_;  ///< types with symbols; other numbers are those of the first sample
  std::vector<SymbolicKernel> kernels_;
  std::vector<SymbolicBuffer> buffers_;
  std::vector<Extent> trips_;  ///< per loop
  std::vector<SymbolicWeight> weights_;
  SizeDecisions decisions_;
  std::vector<ExtentFit::Follower> followers_;
};

/// Tells `fit`, which is of the samples' sizes, what type rules say of the extents of kernels that the samples have in common,
/// and what their imports decided. REQUIRES samples with the same launches and equal decisions_text.
void suggest_extents(const std::vector<PlanSample>& samples, ExtentFit& fit);

/// What two plans of one model do not have in common, kernels and numbers aside, as the end of "the model has other ..."; empty
/// where they have all.
[[nodiscard]] std::string difference_of(const Plan& a, const Plan& b);
/// Is it the first bytes of `longest`? Asks for bytes only where they are not the same tensor's.
[[nodiscard]] bool begins(const Tensor& longest, const Tensor& beginning);
/// What plans must have in common to be one symbolic plan, as text, beside the decisions of their imports.
[[nodiscard]] std::string plan_structure(const Plan& plan);

}  // namespace sylvite
