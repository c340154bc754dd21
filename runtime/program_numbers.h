#pragma once
// A program's numbers as expressions of its model's sizes: at further sizes its kernels are called with other numbers.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lowering/plan/memory_plan.h"
#include "lowering/plan/symbolic_plan.h"
#include "runtime/bindings.h"
#include "runtime/matched_kernels.h"

namespace sylvite {

/// Thread safety: const use only.
class ProgramNumbers {
 public:
  /// Of a program at `sizes`, with weights packed: `made` is what `symbolic` says of them with kernels of `matched`. nullopt
  /// where something is no expression of sizes, or the plan has loops.
  [[nodiscard]] static std::optional<ProgramNumbers> of(const std::shared_ptr<const SymbolicPlan>& symbolic,
                                                        const MatchedKernels& matched, const Dims& sizes,
                                                        const std::shared_ptr<const Plan>& made,
                                                        const Bindings& bindings, bool reuse_memory);

  /// What the program binds at these sizes; nullopt where one of its kernels does not serve them. Whether the model has this symbolic
  /// plan there is for the caller to know.
  [[nodiscard]] std::optional<Bindings> at(const Dims& sizes) const;
  /// The same: `bindings`, which `at` told at other sizes, become those. Where it returns false they are of no use.
  [[nodiscard]] bool change(Bindings& bindings, const Dims& sizes) const;
  /// The plan there, with the same kernels. REQUIRES that `at` tells. Throws Error.
  [[nodiscard]] std::shared_ptr<const Plan> plan_at(const Dims& sizes) const;

 private:
  /// Which of the expressions a number is.
  using Number = std::uint32_t;
  /// An argument in the arena.
  struct Place {
    std::size_t launch = 0;
    std::size_t argument = 0;
    std::size_t root = 0;  ///< of ArenaPlaces
    Number offset = 0;     ///< in the root, in bytes
  };
  /// A table that is another at other sizes.
  struct Table {
    PackedWeights::Slot slot = 0;
    std::size_t weight = 0;  ///< of the symbolic plan
  };
  struct Range {
    Number number = 0;
    std::int64_t low = 0;
    std::int64_t high = 0;
  };
  class Reader;

  ProgramNumbers(std::shared_ptr<const SymbolicPlan> symbolic, std::shared_ptr<const Plan> made,
                 Bindings first, bool reuse_memory);
  [[nodiscard]] std::optional<std::vector<std::int64_t>> evaluate(const SymbolValues& sizes) const;
  void place(Bindings& bindings, const std::vector<std::int64_t>& values) const;

  std::shared_ptr<const SymbolicPlan> symbolic_;
  std::shared_ptr<const Plan> made_;
  std::vector<std::size_t> kernels_;        ///< of `made_`, per kernel of the symbolic plan
  std::vector<std::vector<Extent>> sizes_;  ///< of these kernels, likewise
  Bindings first_;
  std::vector<Extent> expressions_;  ///< different ones
  std::vector<Number> numbers_;      ///< of bindings, in the order in which they are walked
  std::vector<Range> ranges_;        ///< for which kernels are
  /// Images of one pixel lie otherwise than larger ones: pixels, and how many images.
  std::vector<std::pair<Number, Number>> images_;
  /// Bytes of values as kernels say and as the plan says: what agreed at the samples' sizes need not agree elsewhere.
  std::vector<std::pair<Number, Number>> bytes_;
  ArenaPlaces arena_;
  std::vector<Number> root_bytes_;  ///< per root of the arena
  std::vector<Place> places_;
  std::vector<Table> tables_;
  bool reuse_memory_;
};

}  // namespace sylvite
