#pragma once
// The plans of a model whose sizes change: once a few were lowered, those at sizes between them need no import.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/model_sizes.h"
#include "lowering/plan/symbolic_plan.h"
#include "runtime/kernel_menu.h"
#include "runtime/matched_kernels.h"
#include "runtime/program_numbers.h"
#include "schedules/machine.h"

namespace sylvite {

/// What numbers of the model's plans are expressions of.
[[nodiscard]] std::vector<FitSymbol> fit_symbols(const ModelSizes& model);

/// Thread safety: one thread at a time.
class SymbolicPlans {
 public:
  /// `said`: expressions of sizes that the model itself has.
  explicit SymbolicPlans(const ModelSizes& model, std::vector<Extent> said = {});

  /// The model has this plan at these sizes, of an import with these facts.
  void learn(const Sizes& sizes, const std::shared_ptr<const Plan>& plan, SizeFacts facts = {});
  /// Sizes at which a plan would tell most of those around `sizes`: a corner of the range of sizes that may have the same
  /// kernels, each once; nullopt when all were asked for.
  [[nodiscard]] std::optional<Sizes> wanted(const Sizes& sizes);
  /// The plan at these sizes; nullptr where what was learned does not tell. It tells of sizes that lie between those of plans
  /// with one structure, in how large they are, in the powers of two that their product lies between, and in those that divide them
  /// and products of two of them: what passes decide depends on these. Where no plans are around sizes, it tells of those that are a
  /// bit larger, too.
  [[nodiscard]] std::shared_ptr<const Plan> at(const Sizes& sizes, bool reuse_memory);
  /// The same with open kernels of `menu` wherever it has cases of them.
  [[nodiscard]] std::shared_ptr<const Plan> open_at(const Sizes& sizes, bool reuse_memory, KernelMenu& menu,
                                                    const Machine& machine);
  /// What tells the plan at these sizes; nullptr where nothing does.
  [[nodiscard]] std::shared_ptr<const SymbolicPlan> told_at(const Sizes& sizes);
  /// The numbers of a program at these sizes, which has the plan `made` of `open_at`; nullptr where they are not all told.
  [[nodiscard]] std::shared_ptr<const ProgramNumbers> numbers_of(const Sizes& sizes,
                                                                 const std::shared_ptr<const Plan>& made,
                                                                 const Bindings& bindings, bool reuse_memory);

 private:
  /// The least and the greatest of numbers.
  struct Interval {
    double low = 0;
    double high = 0;
  };
  enum class Reach : std::uint8_t {
    met,    ///< between the least and the greatest sizes
    beyond  ///< and an eighth beyond the greatest
  };
  /// Plans of one structure, of imports that decided the same.
  struct Group {
    std::string decisions;
    std::vector<PlanSample> samples;
    std::vector<Sizes> met;  ///< all sizes that are known to have this structure
    std::shared_ptr<const SymbolicPlan> plan;
    std::vector<FitSymbol> symbols;  ///< of the plan's expressions, which hold at multiples of theirs
    std::optional<MatchedKernels> matched;
    std::int64_t matched_with = -1;  ///< KernelMenu::generation
    std::optional<Sizes>
        unmatched;  ///< where kernels that match at the samples do not: a plan there is a sample
    std::shared_ptr<const std::vector<Extent>> said;
    std::vector<Interval> span;  ///< of what traits() says of all sizes that are known to have this structure

    // `given`: the model's symbols.
    void widen(const std::vector<FitSymbol>& given, const Sizes& sizes);
    /// The plan is what the samples have in common.
    void join(const std::vector<FitSymbol>& given);
    [[nodiscard]] bool is_between(const std::vector<FitSymbol>& given, const Sizes& sizes, Reach reach) const;
    /// Is a plan known where the same sizes are none or one? Views vanish there that are work elsewhere: plans of a row and of a
    /// column, which have one structure, say nothing of what lies between.
    [[nodiscard]] bool has_met_alike(const Sizes& sizes) const;
    /// May the model have this structure there, as far as the plan says?
    [[nodiscard]] bool is_possible_at(const std::vector<FitSymbol>& given, const Sizes& sizes,
                                      Reach reach) const;
    /// Are all its samples of a kind that these sizes are, and none that the other was met at?
    [[nodiscard]] bool is_special_beside(const Group& other, const Sizes& sizes) const;
    /// Is this what its plan says?
    [[nodiscard]] bool tells(const PlanSample& sample) const;
    void match(const KernelMenu& menu, const Machine& machine);
  };
  /// The one that tells the plan at these sizes; nullptr where none does.
  [[nodiscard]] Group* group_at(const Sizes& sizes);

  /// Does the plan take the inputs of these sizes? What few points told of a number may be another one there.
  [[nodiscard]] bool has_inputs(const SymbolicPlan& plan, const Sizes& sizes) const;

  std::vector<SizeSymbol> symbols_;
  std::vector<SizedInput> inputs_;
  std::vector<FitSymbol> names_;
  std::shared_ptr<const std::vector<Extent>> said_;
  std::unordered_map<std::string, Group> groups_;  ///< by structure and decisions
  std::set<Sizes> asked_;                          ///< learned, or wanted before
};

}  // namespace sylvite
