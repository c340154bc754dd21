#pragma once
// The directives that are not Halide's own: a table of rows, and the lowering passes that do what they say.

#include <Halide.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lowering/algorithms/algorithm.h"
#include "schedules/schedule.h"

namespace sylvite {

/// What a decision acts on.
enum class DirectiveScope {
  stage,   ///< the pure definition of a Func or one of its updates
  func,    ///< a Func with its updates: not allowed on update(k)
  kernel,  ///< all of the kernel, whichever Func the decision names: one pass, however many decisions
};

struct OwnDirective {
  std::string_view name;
  DirectiveScope scope;
  std::size_t arguments;
  /// What more must hold when a decision is applied; null if nothing. Throws CompileError.
  void (*check)(const Algorithm& algorithm, const Decision& decision);
  /// Of one decision. Runs when the schedule is applied; throws CompileError when the target lacks what it
  /// needs.
  std::unique_ptr<Halide::Internal::IRMutator> (*pass)(const Algorithm& algorithm, const Decision& decision,
                                                       const std::string& target);
  std::string_view help;  ///< begins with the text form
};

/// In the order of their passes: each works on what those before it have made.
[[nodiscard]] std::span<const OwnDirective> own_directives();

/// Adds the lowering passes of a schedule's own directives, row by row and, within a row, in the order of the
/// decisions, and behind them that of every kernel for a CPU. REQUIRES schedule.apply(algorithm) done. Throws CompileError as the rows do.
void add_own_passes(const Schedule& schedule, const Algorithm& algorithm, const std::string& target,
                    Halide::Pipeline& pipeline);

}  // namespace sylvite
