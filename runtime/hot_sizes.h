#pragma once
// Sizes that runs often have get kernels for them alone (compile.specialize = lazy): which sizes these are, and the thread of low
// priority that compiles for one at a time.

#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/background.h"
#include "runtime/session.h"

namespace sylvite {

/// What a program needs: its choices have objects.
struct Specialized {
  Imported imported;
  Chosen chosen;
  std::optional<Program> donor;  ///< on the CPU it may have run, alone: its weights are packed
};

/// The runs at one combination of sizes.
struct Uses {
  std::int64_t runs = 0;
  double since = 0;         ///< on the clock of steady_seconds
  bool is_decided = false;  ///< they have kernels for them alone, or get none
};

/// Thread safety: one thread at a time, beside its own. In a child made by fork it begins anew.
class HotSizes {
 public:
  /// Notes a run. Are these sizes worth kernels for them alone? Those that had a sixteenth of all runs are, once they were run for
  /// `seconds`, which is what compiling such kernels takes: as the ski rental problem has it, at most as long again is lost.
  [[nodiscard]] bool note_run(Uses& uses, double seconds);
  /// Compiles the kernels of `imported`, which serve its sizes alone, packs weights, and tries them. REQUIRES that it `is_idle`.
  void compile(Imported imported, Chosen chosen);
  [[nodiscard]] bool is_idle() const { return making_ == nullptr; }
  [[nodiscard]] bool is_compiling() const { return !is_idle() && making_->is_mine() && !making_->is_ready(); }
  void wait() const;
  /// What was compiled, once. Nothing where nothing is ready, or where it failed.
  [[nodiscard]] std::optional<Specialized> take();

 private:
  std::int64_t runs_ = 0;
  std::unique_ptr<Background<Specialized>> making_;
};

}  // namespace sylvite
