#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "schedules/spaces/matmul_loops.h"
#include "schedules/spaces/spaces.h"

// Spaces matmul_panels and matmul_activations: the loops of matmul_loops.h, with a tile in vector registers.
// With `slab`, matmul_panels folds k in slices of so many steps: a slice of the panels stays in the L1 for
// all rows of a task, whose sums wait in memory from slice to slice. A quiet core gains nothing; where other
// programs crowd its caches, whole panels from the L2 for every tile cost up to a third.

namespace sylvite {
namespace {

/// Every tile of rows reads its panels anew, from the L2 where the L1 does not hold them: tall tiles do it less often. With AVX2
/// tiles are so small that it always shows; with AVX-512 fewer than four rows have too little to do meanwhile.
double panel_cycles(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile) {
  const std::int64_t bytes = tile.panels * panel_width * problem.k * element_bytes(problem);
  if (bytes <= machine.l1_bytes / 2) return 0;
  if (has_small_tiles(machine)) return static_cast<double>(tile.panels);
  RegisterTile least = tile;
  least.rows = 4;
  const bool are_read_again = problem.m > tile.rows;
  return are_read_again ? std::max(0.0, step_cycles(machine, least) - step_cycles(machine, tile)) : 0;
}

double tile_cycles(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile) {
  const auto row_tiles = static_cast<double>(problem.batch * ceil_div(problem.m, tile.rows));
  const auto panel_tiles = static_cast<double>(ceil_div(panel_count(problem), tile.panels));
  const auto steps = static_cast<double>(problem.fold_steps());
  return tiled_cycles(machine, tile, row_tiles, panel_tiles, steps) +
         row_tiles * panel_tiles * steps * panel_cycles(problem, machine, tile);
}

const std::vector<std::int64_t> matmul_rows = {8, 6, 7, 10, 12, 13, 14, 5, 4, 3, 2, 1};
const std::vector<std::int64_t> matmul_panels = {2, 4, 3, 1};

/// The register tile that the model likes best. Rows beyond 8 crowd one set of the L1 when k is a power of
/// two.
RegisterTile best_tile(const MatmulProblem& problem, const Machine& machine) {
  RegisterTile best = tile_of(problem, 1, 1);
  double best_cycles = tile_cycles(problem, machine, best);
  for (const std::int64_t rows : up_to(problem.least_m, matmul_rows)) {
    for (const std::int64_t panels : up_to(least_panels(problem), matmul_panels)) {
      const RegisterTile tile = tile_of(problem, rows, panels);
      const double crowding = rows > 8 ? 1.1 : 1.0;
      const double cycles = crowding * tile_cycles(problem, machine, tile);
      if (!fits_registers(machine, tile) || cycles >= best_cycles) continue;
      best = tile;
      best_cycles = cycles;
    }
  }
  return best;
}

const std::vector<std::int64_t> slab_choices = {256, 192, 128};

bool can_slice(const MatmulProblem& problem) {
  return problem.weight != no_value && problem.element == DType::f32 && !problem.a_is_computed;
}

/// Do the panels of a tile fill half of the L2, so that they leave no room for rows, and every tile of these would fetch them from
/// behind it?
bool is_deep(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile) {
  return tile.panels * panel_width * problem.k * element_bytes(problem) > machine.l2_bytes / 2;
}

/// Of more rows, a panel that the L1 fetches would send too many past the L2.
constexpr std::int64_t most_sliced_rows = 256;
constexpr std::int64_t most_sliced_sums = 1 << 15;  ///< on the stack of a thread

/// Where panels are deep, and for the small tiles of AVX2, if whole panels exceed the L1; if there are rows enough to share a slice.
/// Where a run says how many there are, slices of deep panels cost the fewest as little as whole ones.
bool pays_to_slice(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile) {
  if (problem.has_open_m) return is_deep(problem, machine, tile);
  if (problem.m < 2 * tile.rows) return false;
  const bool are_many = problem.m >= 16 * tile.rows;  // tiles that share a slice
  const bool spares_l1 =
      are_many && panel_cycles(problem, machine, tile) > 0 && problem.batch * problem.m <= most_sliced_rows;
  return spares_l1 || is_deep(problem, machine, tile);
}

std::int64_t sliced_steps(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile) {
  if (!pays_to_slice(problem, machine, tile) || !can_slice(problem)) return 0;
  const auto slab = std::find_if(slab_choices.begin(), slab_choices.end(),
                                 [&](std::int64_t steps) { return problem.k % steps == 0; });
  return slab == slab_choices.end() ? 0 : *slab;
}

/// Of `tiles`, how many a task has: as many as there may be, or fewer where that makes tasks alike.
std::int64_t tiles_alike(std::int64_t tiles, std::int64_t most) {
  return ceil_div(tiles, ceil_div(tiles, std::max<std::int64_t>(1, most)));
}

/// Of `groups`, how many a task has: those by which threads have the least to do, `others` tasks beside each; of equal ones the most,
/// as each task reads the rows anew.
std::int64_t groups_alike(std::int64_t groups, std::int64_t most, std::int64_t others,
                          const Machine& machine) {
  std::int64_t best = 1, least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t size = 1; size <= std::clamp<std::int64_t>(most, 1, groups); ++size) {
    const std::int64_t tasks = ceil_div(groups, size) * others;
    const std::int64_t of_thread = ceil_div<std::int64_t>(tasks, machine.threads) * size;
    if (of_thread > least) continue;
    least = of_thread;
    best = size;
  }
  return best;
}

/// Tasks of a panel and all rows. Where panels are deep, neither side stays in the L2, and a task has more columns, so that a
/// slice of rows comes from behind it for few tasks; of many rows about half as many as columns.
void set_slices(const MatmulProblem& problem, const Machine& machine, const RegisterTile& tile,
                std::int64_t slab, MatmulPoint& point) {
  constexpr std::int64_t rows_of_many = 128;
  const std::int64_t groups = ceil_div(panel_count(problem), tile.panels);
  const std::int64_t rows = problem.m > most_sliced_rows ? rows_of_many : most_sliced_rows;
  point.slab = slab;
  point.row_tiles = problem.has_open_m ? rows_of_many / tile.rows
                                       : tiles_alike(ceil_div(problem.m, tile.rows), rows / tile.rows);
  const std::int64_t sums_of_group = point.row_tiles * tile.rows * tile.panels * panel_width;
  const std::int64_t row_tasks =
      problem.has_open_m ? machine.threads : problem.batch * ceil_div(problem.m, point.row_tiles * tile.rows);
  point.panel_groups = is_deep(problem, machine, tile)
                           ? groups_alike(groups, most_sliced_sums / sums_of_group, row_tasks, machine)
                           : 1;
  point.rows_outer = 0;
  point.unroll_k = 4;
}

/// How many steps of the fold the small tiles of AVX2 take together: where another program shares the core, single ones
/// took up to half as long again.
std::int64_t unrolled_steps(const Kernel& kernel, const MatmulProblem& problem, const Machine& machine,
                            const RegisterTile& tile) {
  if (!has_small_tiles(machine) || kernel.open || tile.rows == 1) return 1;
  return std::gcd(problem.fold_steps(), std::int64_t{4});
}

MatmulPoint tiled_point(const Kernel& kernel, const MatmulProblem& problem, const Machine& machine) {
  const RegisterTile tile = best_tile(problem, machine);
  MatmulPoint point{.rows = tile.rows, .panels = tile.panels, .copy_a = problem.a_is_computed ? 1 : 0};
  set_blocking(problem, machine, tile, point);
  point.unroll_k = unrolled_steps(kernel, problem, machine, tile);
  if (const std::int64_t slab = sliced_steps(problem, machine, tile); slab > 0)
    set_slices(problem, machine, tile, slab, point);
  return point;
}

void write_fold(ScheduleWriter& writer, const std::string& fold, const std::string& out,
                const MatmulTiling& tiling, const MatmulProblem& problem, std::int64_t unroll_k,
                const std::vector<std::string>& batch) {
  writer.add("{}.compute_at({}, t).store_in(MemoryType::Register);", fold, out);
  writer.add("{}.bound_extent(v, {}).bound_extent(p, {}).bound_extent(d1, {});", fold, panel_width,
             tiling.tile.panels, tiling.tile.rows);
  writer.add("{}.vectorize(v).unroll(p).unroll(d1);", fold);
  const bool pairs = problem.pair() > 1;
  std::vector<std::string> order = {"v", "p", "d1", pairs ? "r1" : "r0"};
  if (pairs) order.insert(order.begin(), "r0");
  order.insert(order.end(), batch.begin(), batch.end());
  writer.add("{}.update(0).reorder({}){}.vectorize(v).unroll(p).unroll(d1);", fold, fmt::join(order, ", "),
             pairs ? ".atomic().vectorize(r0)" : "");
  if (unroll_k > 1) writer.add("{}.update(0).unroll({}, {});", fold, pairs ? "r1" : "r0", unroll_k);
}

/// The sums of a task, slice after slice; a group of panels at a time, past which all its rows come.
void write_depth_slices(ScheduleWriter& writer, const std::string& fold, const std::string& out,
                        const std::string& task, const MatmulTiling& tiling, std::int64_t unroll_k) {
  writer.add("{}.compute_at({}, {}).store_in(MemoryType::Stack);", fold, out, task);
  writer.add("{}.bound_extent(v, {}).vectorize(v);", fold, panel_width);
  if (tiling.panel_groups == 1) writer.add("{}.bound_extent(p, {});", fold, tiling.tile.panels);
  writer.add("{}.update(0).split(p, g, q, {}, TailStrategy::GuardWithIf);", fold, tiling.tile.panels);
  writer.add("{}.update(0).split(d1, t, i, {}, TailStrategy::{});", fold, tiling.tile.rows,
             tiling.guards_rows ? "RoundUp" : "GuardWithIf");
  writer.add("{}.update(0).reorder(v, q, i, r0, t, g, r1).vectorize(v).unroll(q).unroll(i);", fold);
  if (unroll_k > 1) writer.add("{}.update(0).unroll(r0, {});", fold, unroll_k);
}

/// A kernel of either space, as it was read.
struct TiledMatmul {
  const Kernel& kernel;
  const Machine& machine;
  MatmulProblem problem;
  bool has_weight;  ///< on the right: matmul_panels
  bool is_widened;  ///< bytes are multiplied as i16
  MatmulPoint heuristic;

  [[nodiscard]] std::vector<Range<MatmulPoint>> ranges() const;
  [[nodiscard]] Candidate at(const MatmulPoint& point) const;
  [[nodiscard]] double cost(const MatmulPoint& point) const;
};

/// Reading b as it lies needs whole panels of neighbouring columns, and no pairs.
bool can_read_in_place(const Kernel& kernel, const MatmulProblem& problem) {
  if (kernel.open && !kernel.open->type(problem.anchor).shape.back().is_known()) return false;
  return problem.pair() == 1 && problem.n % panel_width == 0 &&
         kernel.body.value(problem.b).producer == no_node;
}

std::vector<Range<MatmulPoint>> TiledMatmul::ranges() const {
  using P = MatmulPoint;
  const MatmulPoint& first = heuristic;
  std::vector<Range<P>> ranges = {
      {"rows", &P::rows, starting_with(first.rows, up_to(problem.least_m, matmul_rows))},
      {"panels", &P::panels, starting_with(first.panels, up_to(least_panels(problem), matmul_panels))}};
  for (Range<P>& range : blocking_ranges(problem, first)) ranges.push_back(std::move(range));
  ranges.push_back({"unroll_k", &P::unroll_k, starting_with(first.unroll_k, {1, 2, 4})});
  std::vector<std::int64_t> slabs = {0};
  for (const std::int64_t steps : slab_choices) {
    const bool divides = problem.k % steps == 0 && problem.k > steps;
    const bool helps = has_small_tiles(machine) || is_deep(problem, machine, {first.rows, first.panels});
    if (helps && can_slice(problem) && divides) slabs.push_back(steps);
  }
  ranges.push_back({"slab", &P::slab, starting_with(first.slab, slabs)});
  if (has_weight) {
    ranges.push_back(stream_range());
  } else {
    const bool in_place = can_read_in_place(kernel, problem);
    ranges.push_back(
        {"pack_b", &P::pack_b, in_place ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{1}});
  }
  return ranges;
}

Candidate TiledMatmul::at(const MatmulPoint& point) const {
  const MatmulTiling tiling = tiling_of(problem, point);
  if (!fits_registers(machine, tiling.tile)) {
    throw UnsupportedError("{} rows of {} panels do not fit {} vector registers", tiling.tile.rows,
                           tiling.tile.panels, machine.vector_registers);
  }
  if (point.unroll_k > 1 && problem.fold_steps() % point.unroll_k != 0)
    throw UnsupportedError("the {} steps of k are no multiple of {}", problem.fold_steps(), point.unroll_k);
  if (point.slab > 0 && (point.copy_a != 0 || !can_slice(problem)))
    throw UnsupportedError("slices of k are for weights of f32, and rows that are read as they lie");
  if (const std::int64_t sums =
          tiling.row_tiles * tiling.tile.rows * tiling.panel_groups * tiling.tile.panels * panel_width;
      point.slab > 0 && sums > most_sliced_sums) {
    throw UnsupportedError("{} sums of slices exceed {}", sums, most_sliced_sums);
  }
  const std::string out = output_stage(kernel, problem.output);
  const std::string& name = kernel.body.value(problem.anchor).name;
  const std::vector<std::string> batch = batch_loops(kernel, problem);
  ScheduleWriter writer;
  const std::string task = write_output(writer, kernel, out, tiling, machine, batch);
  writer.add("{}.unroll(i);", out);
  if (point.slab > 0)
    write_depth_slices(writer, name + "_fold", out, task, tiling, point.unroll_k);
  else
    write_fold(writer, name + "_fold", out, tiling, problem, point.unroll_k, batch);
  write_single(writer, kernel, name + "_fold", batch);
  if (point.copy_a != 0 || problem.scales != no_value) write_left(writer, name, machine, problem);
  if (!has_weight && point.pack_b != 0) write_panels(writer, name + "_panels", machine, problem, batch);
  if (point.stream_ahead > 0)
    write_stream(writer, kernel, problem.weight, out, point.slab > 0 ? task : "t", point.stream_ahead);
  Form form{has_weight ? "matmul_panels" : "matmul_activations", {}};
  if (point.slab > 0) form.parameters["slab"] = point.slab;
  if (is_widened) form.parameters["widen"] = 1;
  return {form, writer.take()};
}

double TiledMatmul::cost(const MatmulPoint& point) const {
  const MatmulTiling tiling = tiling_of(problem, point);
  const double cycles = tile_cycles(problem, machine, tiling.tile);
  const double tasks = task_count(problem, tiling);
  constexpr double l3_bytes_per_cycle = 12;
  const auto right_bytes =
      static_cast<double>(panel_count(problem) * panel_width * problem.k * element_bytes(problem));
  const double passes = tiling.rows_outer ? std::max(1.0, tasks / static_cast<double>(problem.batch)) : 1.0;
  const double memory =
      right_bytes / l3_bytes_per_cycle *
      (right_bytes > static_cast<double>(machine.l2_bytes) / 2 ? std::min(passes, 8.0) : 1.0);
  constexpr double task_cycles = 600;
  constexpr double memory_bytes_per_cycle = 10;
  const bool waits = point.stream_ahead == 0 && !has_few_rows(problem);
  const double burst = waits ? 0.5 * right_bytes / memory_bytes_per_cycle : 0;
  return seconds_per_cycle *
         ((std::max(cycles, memory) + burst) / machine.threads * imbalance(tasks, machine.threads) +
          task_cycles * tasks / machine.threads);
}

Binding bind_tiled_products(const Kernel& kernel, const Machine& machine, bool has_weight) {
  const Reading<MatmulProblem> reading = read_matmul(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  MatmulProblem problem = reading.problem;
  if (std::string refusal = product_refusal(machine, problem.element); !refusal.empty()) return {refusal};
  const bool is_widened = widens_bytes(problem.element, machine);
  if (is_widened) problem.widen_bytes();
  if (has_weight && problem.weight == no_value) return {"its right operand is no weight of its own"};
  if (!has_weight && problem.scales != no_value) return {"its right operand is a quantised weight"};
  MatmulPoint point = tiled_point(kernel, problem, machine);
  if (has_weight)
    point.stream_ahead = stream_distance(problem, machine, tiling_of(problem, point));
  else  // packing pays when the rows read the panels often enough
    point.pack_b = can_read_in_place(kernel, problem) && problem.m < 32 ? 0 : 1;
  return bind_space(TiledMatmul{kernel, machine, problem, has_weight, is_widened, point});
}

Binding bind_tiled_panels(const Kernel& kernel, const Machine& machine) {
  return bind_tiled_products(kernel, machine, true);
}

Binding bind_tiled_activations(const Kernel& kernel, const Machine& machine) {
  return bind_tiled_products(kernel, machine, false);
}

}  // namespace

const Space matmul_panels_space = {"matmul_panels", bind_tiled_panels, {}, Space::Open::all};
const Space matmul_activations_space = {"matmul_activations", bind_tiled_activations, {}, Space::Open::all};

}  // namespace sylvite
