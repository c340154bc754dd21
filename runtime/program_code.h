#pragma once
// What programs that differ in sizes alone have in common: one plan's kernels, loaded, and how they are called.

#include <memory>
#include <optional>
#include <vector>

#include "lowering/plan/plan.h"
#include "runtime/kernel_call.h"
#include "runtime/launch_order.h"
#include "runtime/loaded_kernels.h"
#include "runtime/program.h"

namespace sylvite {

/// Const once it is made; safe to share between threads.
struct ProgramCode {
  std::shared_ptr<const Plan> plan;  ///< at the sizes of the first
  ProgramOptions options;
  std::vector<LoadedKernel> kernels;  ///< per kernel of the plan
  std::vector<Candidate> candidates;  ///< likewise
  std::vector<bool> once;             ///< likewise: see writes_once
  std::optional<LaunchOrder> order;
  std::shared_ptr<LoadedCode> loaded;  ///< also of other relatives
};

/// `kernels[i]` implements plan->kernels[i]; `candidates` are those of `kernels`. Throws IoError when an object does not load.
[[nodiscard]] std::shared_ptr<const ProgramCode> load_code(std::shared_ptr<const Plan> plan,
                                                           const std::vector<CompiledKernel>& kernels,
                                                           const std::vector<Candidate>& candidates,
                                                           const ProgramOptions& options,
                                                           std::shared_ptr<LoadedCode> loaded);
/// Per launch, its kernel as it is launched with the sizes of `bindings`. Throws UnsupportedError where one does not serve them.
[[nodiscard]] std::vector<LoadedKernel> kernels_of_launches(const ProgramCode& code,
                                                            const Bindings& bindings);
/// `time` is of launch `number`; `told` is the plan at the sizes of the run, where other kernels may be equal than in the code's.
void name_launch(LaunchTime& time, const Plan& told, std::size_t number);
[[nodiscard]] std::vector<Candidate> candidates_of(const std::vector<CompiledKernel>& kernels);

}  // namespace sylvite
