#pragma once
// What the generic spaces share: facts about a kernel, and the loops of its output stage while a schedule is
// written.

#include <cstdint>
#include <string>
#include <vector>

#include "lowering/algorithms/algorithm.h"
#include "lowering/plan/run_extents.h"
#include "schedules/bind_space.h"
#include "schedules/spaces/schedule_writer.h"

namespace sylvite {

/// A kernel as the generic spaces see it.
struct KernelFacts {
  std::string output;            ///< the stage that writes the first output
  Dims extents;                  ///< its loops d0, d1, ..., innermost first
  std::vector<RunExtent> loops;  ///< the same, and what they are in other runs
  const Node* anchor;            ///< nullptr for pointwise kernels
  std::string anchor_value;      ///< the name of the anchor's first output
  int lanes;                     ///< elements of the widest type in a vector register
  double work;                   ///< element operations, roughly: for thresholds
};
[[nodiscard]] KernelFacts facts_of(const Kernel& kernel, const Machine& machine);

/// The same of a kernel without folds, whose output is the stage of all results in the form "together" where it has several.
[[nodiscard]] KernelFacts element_facts(const Kernel& kernel, const Machine& machine);
/// "", or why no space takes the kernel's elements one by one: it folds, or its results do not lie alike.
[[nodiscard]] std::string refuse_elements(const Kernel& kernel);

/// How many innermost loops of a kernel without folds can be one: along them each value has all the extents
/// of the output or none, and elements stay where they are. At least 1.
[[nodiscard]] std::size_t common_run(const Kernel& kernel, const Dims& extents);

/// Whether update 0 writes dim `position` by the stage's own pure var, so that its iterations are
/// independent.
[[nodiscard]] bool is_pure_dim(const Halide::Func& func, std::size_t position);

/// Extents of a type's storage dims, innermost first: those of the vars d0, d1, ...
[[nodiscard]] Dims loop_extents(const TensorType& type);

/// Estimated seconds to do `work` element operations (4 bytes each, in vectors) with `threads` of the
/// machine.
[[nodiscard]] double vector_seconds(double work, const Machine& machine, double threads);

/// The loops of a stage, innermost first, as directives change them.
class LoopNest {
 public:
  struct Loop {
    std::string name;
    RunExtent run;
    [[nodiscard]] bool is_one() const { return run.extent == 1 && !run.is_open; }
  };

  LoopNest(ScheduleWriter& writer, std::string stage, const std::vector<RunExtent>& extents);

  [[nodiscard]] const std::vector<Loop>& loops() const { return loops_; }
  [[nodiscard]] const std::string& stage() const { return stage_; }

  /// Fuses the `count` innermost loops into one, up to the first that is open.
  void fuse_inner(std::size_t count);
  /// Fuses innermost loops of one iteration into the next.
  void drop_unit_loops();
  /// Makes loop `position` innermost.
  void move_inside(std::size_t position);
  /// Makes the innermost loop outermost.
  void move_outside();
  /// Splits the innermost loop into `vectors` vectors of `lanes` elements, unrolled; the rest stays as the
  /// next loop. Fewer when the loop is short in some run. Tails are computed by shifting inwards: REQUIRES outputs not to
  /// alias inputs. Returns the elements of one step.
  std::int64_t vectorize_inner(std::int64_t lanes, std::int64_t vectors);
  /// A vector of all lanes along the innermost loop, however short it may be: lanes beyond its end store nothing. Returns `lanes`.
  /// REQUIRES a loop.
  std::int64_t mask_inner(std::int64_t lanes);
  /// Unrolls the innermost loop in vectors: each knows where it is. REQUIRES at least `lanes` elements in a loop that is not open.
  void unroll_inner(std::int64_t lanes);
  /// Splits loop `position` by `factor` and unrolls the inner part, innermost but for the vectors.
  /// Returns the factor used, at most the least extent.
  std::int64_t tile(std::size_t position, std::int64_t factor);
  /// Splits loop `position` into blocks of `factor` iterations, which stay a loop; that of the blocks is the next one.
  /// REQUIRES as many iterations in each run.
  void block(std::size_t position, std::int64_t factor);
  /// Runs the outer loops as at least `tasks` parallel tasks where there are that many iterations. The loops
  /// up to `keep` (counted from the innermost) stay serial.
  void parallelize(std::int64_t tasks, std::size_t keep);

 private:
  [[nodiscard]] std::string fresh(const std::string& stem);
  void reorder();
  [[nodiscard]] std::string shifting_tail(const RunExtent& run, std::int64_t factor);
  /// Iterations of a task. Where they are open, short runs shall have as many tasks as threads, too, but at the kernel's sizes
  /// there are at most sixteen times the tasks: each has to be handed out.
  [[nodiscard]] static std::int64_t task_size(const RunExtent& run, std::int64_t tasks);

  ScheduleWriter& writer_;
  std::string stage_;
  std::vector<Loop> loops_;         ///< serial ones
  std::vector<std::string> inner_;  ///< vectorised and unrolled loops, inside all of loops_
  int names_ = 0;
  bool shifts_ = false;  ///< the last step of some split loop shifts inwards
};

/// How many tasks to make: 0 when the work is not worth a second thread.
[[nodiscard]] std::int64_t task_count(const KernelFacts& facts, const Machine& machine,
                                      std::int64_t tasks_per_thread);

}  // namespace sylvite
