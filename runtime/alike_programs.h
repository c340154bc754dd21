#pragma once
// Programs at further sizes of a model that run the kernels of one that is there: only numbers differ, and no plan is made.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/session.h"

namespace sylvite {

class ProgramNumbers;
class SymbolicPlan;
struct ProgramCode;

/// Thread safety: one thread at a time. REQUIRES models with a menu and plans.
class AlikePrograms {
 public:
  /// After so many runs with the kernels of others it is worth to look for the best ones.
  static constexpr int few_runs = 32;

  /// A program of what bind_known_sizes told at these sizes, with kernels that were found to be the best there.
  void note(const OpenModel& model, const Sizes& sizes, const Built& built);
  /// One at these sizes, with the kernels of the nearest sizes whose kernels serve them; nullopt where none near do.
  [[nodiscard]] std::optional<Built> at(const OpenModel& model, const Sizes& sizes,
                                        const Relatives& relatives);
  /// Nobody runs this program of the model any more: the next one with its kernels may be made of it, which costs the least.
  void retire(Program program);
  /// There may be better kernels.
  void forget() { forms_.clear(); }

 private:
  using SizeLogs = std::vector<double>;  ///< log2 of sizes and one
  struct Form {
    std::shared_ptr<const SymbolicPlan> told_by;
    std::int64_t generation = 0;  ///< of the menu
    std::shared_ptr<const ProgramCode> code;
    std::shared_ptr<const ProgramNumbers> numbers;
    std::shared_ptr<const std::vector<Choice>> choices;
    int launches = 0;
    std::vector<SizeLogs> best_at;
    std::vector<Program> spares = {};  ///< the most recent last
  };
  [[nodiscard]] std::vector<Form*> near(const Sizes& sizes,
                                        const std::shared_ptr<const SymbolicPlan>& told_by,
                                        std::int64_t generation);
  [[nodiscard]] static std::optional<Program> program_of(Form& form, const Sizes& sizes,
                                                         const Relatives& relatives);

  std::vector<Form> forms_;
};

/// Do the plans' launches run the same kernels, whatever their sizes?
[[nodiscard]] bool have_kernels_alike(const Plan& one, const Plan& other);

}  // namespace sylvite
