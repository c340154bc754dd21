#include "schedules/spaces/matmul_loops.h"

#include <algorithm>

namespace sylvite {

std::int64_t panel_count(const MatmulProblem& problem) {
  return ceil_div(problem.n, panel_width);
}

std::int64_t least_panels(const MatmulProblem& problem) {
  return ceil_div(problem.least_n, panel_width);
}

MatmulTiling tiling_of(const MatmulProblem& problem, const MatmulPoint& point) {
  MatmulTiling tiling{};
  tiling.tile =
      tile_of(problem, std::min(point.rows, problem.least_m), std::min(point.panels, least_panels(problem)));
  tiling.guards_rows = point.slab > 0 && problem.has_open_m;
  const std::int64_t row_tiles = ceil_div(problem.m, tiling.tile.rows);
  tiling.row_tiles = tiling.guards_rows ? point.row_tiles : std::min(point.row_tiles, row_tiles);
  tiling.panel_groups = std::min(point.panel_groups, ceil_div(panel_count(problem), tiling.tile.panels));
  tiling.rows_outer = point.rows_outer != 0;
  tiling.whole_tasks =
      point.slab > 0;  // whose sums lie around the loops of a task, where no test guards them
  return tiling;
}

double task_count(const MatmulProblem& problem, const MatmulTiling& tiling) {
  const std::int64_t rows = ceil_div(ceil_div(problem.m, tiling.tile.rows), tiling.row_tiles);
  const std::int64_t panels =
      ceil_div(ceil_div(panel_count(problem), tiling.tile.panels), tiling.panel_groups);
  return static_cast<double>(problem.batch * rows * panels);
}

std::int64_t element_bytes(const MatmulProblem& problem) {
  return static_cast<std::int64_t>(dtype_size(problem.element));
}

RegisterTile tile_of(const MatmulProblem& problem, std::int64_t rows, std::int64_t panels) {
  return {rows, panels, problem.element == DType::f64 ? 2 * panel_width : panel_width};
}

namespace {

/// Does one thread take so little time that to wake the others, and to wait for them, costs what they gain? Each step
/// of a recurrent network is such a product.
bool is_short(const MatmulProblem& problem, const Machine& machine, std::int64_t right_bytes) {
  constexpr double short_cycles = 10'000;
  constexpr double l2_bytes_per_cycle = 32;
  const double products =
      static_cast<double>(problem.batch * problem.m) * static_cast<double>(problem.n * problem.k);
  const double multiply_cycles = products / (2 * machine.vector_floats);
  return std::max(multiply_cycles, static_cast<double>(right_bytes) / l2_bytes_per_cycle) < short_cycles;
}

}  // namespace

/// Which operand stays in the L2 while the other passes by. One fits: the other passes once. Neither: rows in
/// blocks of half the L2, past which all panels come; or, where less passes by, groups of panels, past which all rows come: of long
/// rows, a block has few.
void set_blocking(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile,
                  MatmulPoint& point) {
  const std::int64_t tiles = ceil_div(problem.m, tile.rows);
  const std::int64_t groups = ceil_div(panel_count(problem), tile.panels);
  const std::int64_t room = machine.l2_bytes / 2;
  const std::int64_t row_bytes = problem.k * element_bytes(problem);
  const std::int64_t right_bytes = groups * tile.panels * panel_width * row_bytes;
  const bool keeps_right = right_bytes <= room;
  // All rows and a group of panels, while results pass by; else as many blocks of rows as must be, all alike,
  // beside all panels where these fit.
  const std::int64_t group_bytes = tile.panels * panel_width * row_bytes;
  const bool keeps_left = problem.m * row_bytes + group_bytes <= machine.l2_bytes * 3 / 4;
  const std::int64_t left_room =
      right_bytes <= machine.l2_bytes * 5 / 8 ? machine.l2_bytes * 7 / 8 - right_bytes : room;
  const std::int64_t fitting_tiles = std::max<std::int64_t>(1, left_room / row_bytes / tile.rows);
  const std::int64_t blocks = keeps_left ? 1 : ceil_div(tiles, fitting_tiles);
  point.row_tiles = keeps_right && tiles > 1 ? 1 : ceil_div(tiles, blocks);
  point.panel_groups = keeps_right && tiles > 1 ? groups : 1;
  const bool passes_rows =
      !keeps_right && blocks > 1 && 4 * problem.m * row_bytes * groups < right_bytes * blocks;
  if (passes_rows) point.row_tiles = tiles;
  point.rows_outer = passes_rows ? 0 : 1;
  if (problem.batch == 1 && is_short(problem, machine, right_bytes)) {
    point.row_tiles = tiles;
    point.panel_groups = groups;
    return;
  }
  while (task_count(problem, tiling_of(problem, point)) < 2.0 * machine.threads) {
    std::int64_t& larger = point.row_tiles > point.panel_groups ? point.row_tiles : point.panel_groups;
    if (larger <= 1) break;
    larger = ceil_div(larger, 2);
  }
}

std::vector<Range<MatmulPoint>> blocking_ranges(const MatmulProblem& problem, const MatmulPoint& first) {
  const std::int64_t tiles = ceil_div(problem.m, first.rows);
  const std::int64_t groups = ceil_div(panel_count(problem), first.panels);
  using P = MatmulPoint;
  return {{"row_tiles", &P::row_tiles, starting_with(first.row_tiles, up_to(tiles, {tiles, 1, 2, 4, 8, 16}))},
          {"panel_groups", &P::panel_groups,
           starting_with(first.panel_groups, up_to(groups, {1, 2, 4, 8, groups}))},
          {"rows_outer", &P::rows_outer, starting_with(first.rows_outer, {0, 1})},
          {"copy_a", &P::copy_a, starting_with(first.copy_a, {0, 1})}};
}

bool has_few_rows(const MatmulProblem& problem) {
  constexpr std::int64_t few_rows = 3;
  return problem.m <= few_rows;
}

Range<MatmulPoint> stream_range() {
  return {"stream_ahead", &MatmulPoint::stream_ahead, {0, 1, 2, 3}};
}

/// Weights that the L2 cannot keep come from further away in every run: they are fetched ahead. Not where a
/// group would drive out of the L2 what is fetched there: then the processor, which sees long streams, does
/// better alone. Nor for few rows, which are done with a line in less time than fetching another takes: a row by weights from
/// the L3, a step of a recurrent network, took half as long again.
std::int64_t stream_distance(const MatmulProblem& problem, const Machine& machine,
                             const MatmulTiling& tiling) {
  const std::int64_t panel_bytes = panel_width * problem.k * element_bytes(problem);
  const bool stays = panel_count(problem) * panel_bytes <= machine.l2_bytes / 2;
  const bool crowds = tiling.tile.panels * panel_bytes > machine.l2_bytes / 2;
  return stays || crowds || has_few_rows(problem) ? 0 : 1;
}

std::vector<std::string> batch_loops(const Kernel& kernel, const MatmulProblem& problem) {
  std::vector<std::string> loops;
  for (int d = 2; d < kernel.body.type(problem.anchor).rank(); ++d) loops.push_back(fmt::format("d{}", d));
  return loops;
}

std::string write_output(ScheduleWriter& writer, const Kernel& kernel, const std::string& out,
                         const MatmulTiling& tiling, const Machine& machine,
                         const std::vector<std::string>& batch) {
  writer.add("{}.split(d0, p, v, {}, TailStrategy::GuardWithIf);", out, panel_width);
  writer.add("{}.split(p, g, q, {}, TailStrategy::ShiftInwards);", out, tiling.tile.panels);
  writer.add("{}.split(d1, t, i, {}, TailStrategy::ShiftInwards);", out, tiling.tile.rows);
  const char* tail = tiling.whole_tasks ? "ShiftInwards" : "GuardWithIf";
  writer.add("{}.split(g, gg, g, {}, TailStrategy::{});", out, tiling.panel_groups, tail);
  writer.add("{}.split(t, tt, t, {}, TailStrategy::{});", out, tiling.row_tiles,
             tiling.guards_rows ? "GuardWithIf" : tail);
  std::vector<std::string> tasks = {"tt", "gg"};
  if (tiling.rows_outer) std::swap(tasks[0], tasks[1]);
  // Bounds of sums that wait around a task's loops do not see through loops that are one.
  const std::size_t together = tiling.whole_tasks ? 1 : loops_of_entries(kernel, tasks.size());
  tasks.insert(tasks.end(), batch.begin(), batch.end());
  writer.add("{}.reorder(v, q, i, t, g, {}).vectorize(v).unroll(q);", out, fmt::join(tasks, ", "));
  return machine.threads > 1 ? writer.parallelize(out, tasks, together) : tasks.front();
}

namespace {

/// The extremes of every row, each in registers.
void write_extremes(ScheduleWriter& writer, const std::string& name, const Machine& machine,
                    const MatmulProblem& problem) {
  const std::int64_t lanes = quantized_lanes(problem.k);
  writer.add("{}_extremes.compute_root().bound(s, 0, 2);", name);
  writer.add("{}_extremes.update(0).reorder(r0, s, d1).atomic().vectorize(r0, {}).unroll(s);", name, lanes);
  if (machine.threads > 1) writer.add("{}_extremes.update(0).parallel(d1);", name);
  writer.add("{0}_lanes.compute_at({0}_extremes, d1).store_in(MemoryType::Register);", name);
  writer.add("{}_lanes.bound_extent(v, {}).bound_extent(s, 2).vectorize(v).unroll(s);", name, lanes);
  writer.add("{}_lanes.update(0).reorder(v, s, r0).vectorize(v).unroll(s);", name);
  for (const char* stage : {"inverse", "scale", "zero"})
    writer.add("{}_{}.compute_root().vectorize(d1, {}, TailStrategy::GuardWithIf);", name, stage,
               panel_width);
}

}  // namespace

void write_left(ScheduleWriter& writer, const std::string& name, const Machine& machine,
                const MatmulProblem& problem, std::int64_t slab) {
  const std::string left = name + "_a";
  const bool is_quantized = problem.scales != no_value;
  if (is_quantized) write_extremes(writer, name, machine, problem);
  const std::int64_t lanes = is_quantized ? quantized_lanes(problem.k) : panel_width;
  writer.add("{}.compute_root();", left);
  if (slab > 0) {
    writer.add("{0}.bound(d0, 0, {1}).vectorize(d0, {1});", left, slab);
    if (machine.threads > 1) writer.add("{}.parallel(s);", left);
    return;
  }
  if (problem.k >= lanes) writer.add("{}.vectorize(d0, {});", left, lanes);
  if (machine.threads > 1) writer.add("{}.parallel(d1);", left);
}

namespace {

constexpr std::int64_t block_steps = 16;
constexpr std::int64_t block_panels = 8;

/// Does a panel take a line from each of more pages than the processor remembers? It is then filled in blocks: from a few
/// pages several lines that lie together, into a few panels.
bool is_far_apart(const MatmulProblem& problem, const Machine& machine) {
  const bool has_blocks = problem.n >= block_panels * panel_width && problem.k >= block_steps;
  return has_blocks && problem.n * problem.k * element_bytes(problem) > machine.l2_bytes;
}

}  // namespace

void write_panels(ScheduleWriter& writer, const std::string& panels, const Machine& machine,
                  const MatmulProblem& problem, const std::vector<std::string>& batch) {
  writer.add("{}.compute_root().bound(v, 0, {}).vectorize(v);", panels, panel_width);
  if (problem.pair() > 1) writer.add("{}.bound(u, 0, {}).unroll(u);", panels, problem.pair());
  std::string outermost = batch.empty() ? "p" : batch.back();
  if (is_far_apart(problem, machine)) {
    writer.add("{}.split(k, kk, k, {}, TailStrategy::GuardWithIf);", panels, block_steps);
    writer.add("{}.split(p, pp, p, {}, TailStrategy::GuardWithIf);", panels, block_panels);
    std::vector<std::string> order = {"v", "k", "p", "kk", "pp"};
    if (problem.pair() > 1) order.insert(order.begin(), "u");
    order.insert(order.end(), batch.begin(), batch.end());
    writer.add("{}.reorder({});", panels, fmt::join(order, ", "));
    if (batch.empty()) outermost = "pp";
  }
  if (machine.threads > 1) writer.add("{}.parallel({});", panels, outermost);
}

}  // namespace sylvite
