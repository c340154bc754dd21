#pragma once
// Kernels for the same range of sizes that are fast at others each: tiles that fit a large image leave much of a small one to
// their tails.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lowering/plan/kernel.h"
#include "schedules/candidate.h"
#include "schedules/machine.h"
#include "schedules/space.h"

namespace sylvite {

/// What a kernel runs where nothing was measured.
struct DefaultChoice {
  Candidate candidate;
  std::string space;  ///< whose heuristic point it is
  Point point;
};
/// Throws UnsupportedError, CompileError for an open kernel that cannot be made: a template whose text depends on its sizes, or
/// a schedule that needs numbers or does not apply.
[[nodiscard]] DefaultChoice default_choice(const Kernel& kernel, const Machine& machine);

/// Of the text of a kernel.
using IsCompiled = std::function<bool(const std::string& text)>;

/// Thread safety: one thread at a time.
class KernelVariants {
 public:
  explicit KernelVariants(Kernel open);

  [[nodiscard]] bool has_case(const Kernel& kernel) const;
  /// Is it one of them, at any sizes?
  [[nodiscard]] bool has(const Kernel& kernel) const;
  /// The one that is for all sizes.
  [[nodiscard]] const Kernel& first() const { return all_.front().kernel; }
  /// The case at these sizes of that which should take the least time, of those that `is_compiled` where any is; nullopt where none is
  /// for them, or can be launched.
  [[nodiscard]] std::optional<Kernel> case_at(const Dims& sizes, const Machine& machine,
                                              const IsCompiled& is_compiled = nullptr);
  /// The same at the sizes at which `kernel` is a case; nullopt, too, where it is none.
  [[nodiscard]] std::optional<Kernel> case_of(const Kernel& kernel, const Machine& machine,
                                              const IsCompiled& is_compiled = nullptr);
  /// What it should take there, in seconds; 0 where there is no estimate. REQUIRES a case.
  [[nodiscard]] double seconds(const Kernel& kernel, const Machine& machine);
  /// A kernel for the sizes of `kernel`, which is a case, joins where it should be clearly faster there, and by so many seconds.
  void vary(const Kernel& kernel, const Machine& machine, double least_gain);
  /// REQUIRES an open kernel that differs in its hints alone, or is for fewer sizes, too.
  void add(Kernel open) { all_.push_back({std::move(open), {}}); }
  /// Those whose text `is_wanted` stay, where there is one, and one that is for all sizes.
  void keep_if(const IsCompiled& is_wanted);
  [[nodiscard]] std::vector<std::string> texts() const;
  [[nodiscard]] std::vector<Kernel> kernels() const;

 private:
  class Estimates;
  struct Variant;
  /// What case_at gives, from the case of the first kernel.
  [[nodiscard]] std::optional<Kernel> fastest(const std::optional<Kernel>& of_first, const Machine& machine,
                                              const IsCompiled& is_compiled);
  /// The best first; those that are not for these sizes, at which `kernel` is the case, last.
  [[nodiscard]] std::vector<Variant*> ranked(const Kernel& kernel, const Dims& sizes, const Machine& machine,
                                             const IsCompiled& is_compiled);
  /// What each of these should take for `kernel`, the case at these sizes; on a GPU, where not all have an estimate, how far the
  /// sizes are from its own.
  [[nodiscard]] static std::vector<double> costs_of(const std::vector<Variant*>& variants,
                                                    const Kernel& kernel, const Dims& sizes,
                                                    const Machine& machine);
  struct Variant {
    Kernel kernel;
    std::optional<DefaultChoice> choice;  ///< once somebody asked

    [[nodiscard]] const DefaultChoice& chosen(const Machine& machine);
  };
  [[nodiscard]] bool has_text(const std::string& text) const;
  [[nodiscard]] Variant& best(const Kernel& kernel, const Machine& machine);

  std::vector<Variant> all_;  ///< the first of all first, which is for all sizes
};

}  // namespace sylvite
