#pragma once
// What schedules must fit: extents of a kernel at the sizes that it is tuned for, and in any run.

#include <vector>

#include "lowering/plan/kernel.h"

namespace sylvite {

struct RunExtent {
  std::int64_t extent = 1;    ///< at the kernel's sizes
  std::int64_t least = 1;     ///< in any run: tiles and vectors that shift inwards must not be longer
  std::int64_t multiple = 1;  ///< divides it in any run
  bool is_open = false;       ///< runs differ

  RunExtent() = default;
  RunExtent(std::int64_t number)  // NOLINT(google-explicit-constructor): the same in all runs
      : extent(number), least(number), multiple(number) {}
  RunExtent(std::int64_t extent, std::int64_t least) : extent(extent), least(least), is_open(true) {}

  [[nodiscard]] bool is_multiple_of(std::int64_t factor) const { return multiple % factor == 0; }
  /// Of two loops that become one.
  [[nodiscard]] RunExtent fused_with(const RunExtent& other) const;
  /// Of a loop over groups of `step` iterations.
  [[nodiscard]] RunExtent steps(std::int64_t step) const;
};

/// The body for all sizes, where the kernel is for many.
[[nodiscard]] const Graph& widest_body(const Kernel& kernel);

/// Which node of `kernel.open` the anchor is: there, sizes that are numbers of the kernel are nodes (Op::extents), too. REQUIRES an open
/// kernel.
[[nodiscard]] NodeId open_anchor(const Kernel& kernel);

/// The least that a logical dim of a body value has in any run; `kernel.body` need not have numbers.
[[nodiscard]] std::int64_t least_extent(const Kernel& kernel, ValueId id, std::size_t dim);
/// The most; INT64_MAX without a bound.
[[nodiscard]] std::int64_t most_extent(const Kernel& kernel, ValueId id, std::size_t dim);
/// Of a body value's storage dims, innermost first: those of the vars d0, d1, ...
[[nodiscard]] std::vector<RunExtent> run_extents(const Kernel& kernel, ValueId id);

/// Pads of a node of the body that moves a window.
[[nodiscard]] std::vector<Extent> pads_in_runs(const Kernel& kernel, const Node& node);
/// Does a window reach beyond the ends of spatial dim `dim` in some run, as far as its pads say?
[[nodiscard]] bool has_pads(const Kernel& kernel, const Node& node, std::size_t dim);

/// Is every open extent of a value the outermost of its dims? Loops inside have numbers then.
[[nodiscard]] bool only_batches_are_open(const Kernel& kernel);

/// Has it a constant that counts, which differs between runs (Op::extents)?
[[nodiscard]] bool has_counts(const Kernel& kernel);

}  // namespace sylvite
