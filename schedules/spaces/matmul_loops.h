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
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/spaces.h"

namespace sylvite {

/// A point's numbers, clamped to the problem's extents.
struct MatmulTiling {
  RegisterTile tile;
  std::int64_t row_tiles;     ///< tiles of rows in a task
  std::int64_t panel_groups;  ///< groups of panels in a task
  bool rows_outer;
};
/// Reads rows, panels, row_tiles, panel_groups and rows_outer.
[[nodiscard]] MatmulTiling tiling_of(const MatmulProblem& problem, const Point& point);

[[nodiscard]] std::int64_t panel_count(const MatmulProblem& problem);
[[nodiscard]] std::int64_t element_bytes(const MatmulProblem& problem);
[[nodiscard]] double task_count(const MatmulProblem& problem, const MatmulTiling& tiling);
/// 0 for parameters that a point need not have.
[[nodiscard]] std::int64_t optional(const Point& point, const std::string& name);

/// Sets row_tiles, panel_groups and rows_outer: which operand stays in the L2 while the other passes by; and
/// at least two tasks a thread.
void set_blocking(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile,
                  Point& point);
/// The parameters row_tiles, panel_groups, rows_outer and copy_a, with a first point's values first.
[[nodiscard]] std::vector<Parameter> blocking_parameters(const MatmulProblem& problem, const Point& first);
/// With the parameter stream_ahead: how many slabs weights are fetched ahead.
[[nodiscard]] std::vector<Parameter> with_stream_ahead(std::vector<Parameter> parameters);
/// With a first value for it: 0 for weights that stay in the L2.
[[nodiscard]] Point with_stream_ahead(const MatmulProblem& problem, const Machine& machine, Point point);

/// "d2", "d3", ...: the product's batch loops, innermost first.
[[nodiscard]] std::vector<std::string> batch_loops(const Kernel& kernel, const MatmulProblem& problem);
/// Splits and orders the output's loops; with threads, every task loop becomes one parallel loop.
void write_output(ScheduleWriter& writer, const std::string& out, const MatmulTiling& tiling,
                  const Machine& machine, std::vector<std::string> batch);
/// The left operand of the product `name` as rows of its own, made before, or as slabs of so many elements of
/// them if `slab` is not 0; quantised ones after their extremes.
void write_left(ScheduleWriter& writer, const std::string& name, const Machine& machine,
                const MatmulProblem& problem, std::int64_t slab = 0);
/// The right operand in panels, made before.
void write_panels(ScheduleWriter& writer, const std::string& panels, const Machine& machine,
                  const MatmulProblem& problem, const std::vector<std::string>& batch);

}  // namespace sylvite
