#pragma once
// What the spaces of matmuls share. The output's loops, innermost first:
//   v, q    the 16 columns of a panel, `panels` panels          one tile
//   i       `rows` rows                                        of it
//   t, g    `row_tiles` tiles of rows, `panel_groups` groups of panels: one task
//   tt, gg  the tasks, `rows_outer` says which is outer; then the batch
// Tails are shifted inwards: some elements are computed twice, so the output must alias no input.

#include <cstdint>
#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/bind_space.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/schedule_writer.h"

namespace sylvite {

/// A point of a space of matmuls. Each space has some of these numbers as parameters; the others stay.
struct MatmulPoint {
  std::int64_t rows = 1;
  std::int64_t panels = 1;
  std::int64_t row_tiles = 1;
  std::int64_t panel_groups = 1;
  std::int64_t rows_outer = 1;
  std::int64_t copy_a = 0;        ///< 1: the left operand is copied before; further values of the space
  std::int64_t pack_b = 1;        ///< 1: activations on the right are copied into panels before
  std::int64_t unroll_k = 1;      ///< steps of the fold
  std::int64_t slab = 0;          ///< steps of a slice of the fold; 0: it is not sliced
  std::int64_t stream_ahead = 0;  ///< slabs that weights are fetched ahead
  std::int64_t overlap = 0;       ///< 1: the epilogue of a block runs beside the next block's products
};

/// A point's numbers, clamped to the problem's extents.
struct MatmulTiling {
  RegisterTile tile;
  std::int64_t row_tiles;     ///< tiles of rows in a task
  std::int64_t panel_groups;  ///< groups of panels in a task
  bool rows_outer;
  bool guards_rows;  ///< a run says how many there are, which may be fewer than a whole task has
  bool whole_tasks;  ///< the last task does again what the one before has done, instead of less than others
};
[[nodiscard]] MatmulTiling tiling_of(const MatmulProblem& problem, const MatmulPoint& point);

[[nodiscard]] std::int64_t panel_count(const MatmulProblem& problem);
[[nodiscard]] std::int64_t least_panels(const MatmulProblem& problem);  ///< in any run
[[nodiscard]] std::int64_t element_bytes(const MatmulProblem& problem);
/// Registers are counted in floats of 32 bits, of which a sum of f64 takes two.
[[nodiscard]] RegisterTile tile_of(const MatmulProblem& problem, std::int64_t rows, std::int64_t panels);
[[nodiscard]] double task_count(const MatmulProblem& problem, const MatmulTiling& tiling);

/// Sets row_tiles, panel_groups and rows_outer: which operand stays in the L2 while the other passes by; and
/// at least two tasks a thread.
void set_blocking(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile,
                  MatmulPoint& point);
/// Of row_tiles, panel_groups, rows_outer and copy_a, with a first point's values first.
[[nodiscard]] std::vector<Range<MatmulPoint>> blocking_ranges(const MatmulProblem& problem,
                                                              const MatmulPoint& first);
/// So few that a line of weights is done with in less time than fetching another takes.
[[nodiscard]] bool has_few_rows(const MatmulProblem& problem);
/// How many slabs weights are fetched ahead; the first guess is 0 for weights that stay in the L2.
[[nodiscard]] Range<MatmulPoint> stream_range();
[[nodiscard]] std::int64_t stream_distance(const MatmulProblem& problem, const Machine& machine,
                                           const MatmulTiling& tiling);

/// "d2", "d3", ...: the product's batch loops, innermost first.
[[nodiscard]] std::vector<std::string> batch_loops(const Kernel& kernel, const MatmulProblem& problem);
/// Splits and orders the output's loops; with threads, every task loop becomes one parallel loop, as far as
/// loops_of_entries says. Returns the loop around a task.
std::string write_output(ScheduleWriter& writer, const Kernel& kernel, const std::string& out,
                         const MatmulTiling& tiling, const Machine& machine,
                         const std::vector<std::string>& batch);
/// The left operand of the product `name` as rows of its own, made before, or as slabs of so many elements of
/// them if `slab` is not 0; quantised ones after their extremes.
void write_left(ScheduleWriter& writer, const std::string& name, const Machine& machine,
                const MatmulProblem& problem, std::int64_t slab = 0);
/// The right operand in panels, made before.
void write_panels(ScheduleWriter& writer, const std::string& panels, const Machine& machine,
                  const MatmulProblem& problem, const std::vector<std::string>& batch);

}  // namespace sylvite
