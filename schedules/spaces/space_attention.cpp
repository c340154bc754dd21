#include <algorithm>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/problems.h"
#include "lowering/algorithms/strided_view.h"
#include "schedules/bind_space.h"
#include "schedules/directives/amx_tiles.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/schedule_writer.h"
#include "schedules/spaces/spaces.h"

// Space attention_rows. One task is a block of query rows of one batch entry: its logits, their softmax and
// the weighted values are made one after the other, and stay in the cache. The output's loops, innermost
// first:
//   v, q    the 16 columns of a panel, `value_panels` panels    in registers
//   i       `rows` rows                                        in registers
//   ii      `row_tiles` tiles of rows: one block
//   g       the panels
//   t       the blocks; then the batch
// Tails are shifted inwards: some elements are computed twice, so the output must alias no input. With AMX
// both products of a tile are made in tile registers and go through the stack.

namespace sylvite {
namespace {

struct AttentionNumbers {
  std::int64_t rows = 1;
  std::int64_t row_tiles = 1;
  std::int64_t key_panels = 1;
  std::int64_t value_panels = 1;
  std::int64_t keys_once = 0;
  std::int64_t pack_values = 0;
  std::int64_t amx = 0;
};

/// A point's numbers, clamped to the problem's extents.
struct AttentionTiling {
  std::int64_t rows;
  std::int64_t row_tiles;
  std::int64_t key_panels;
  std::int64_t value_panels;
  bool keys_once;    ///< the key panels of all batch entries are made before, not per entry
  bool pack_values;  ///< the values are copied into panels too
  bool amx;          ///< both products in tiles
};

std::int64_t column_panels(const AttentionProblem& problem) {
  return ceil_div(problem.columns, panel_width);
}

/// Of so many panels a tile may be, in any run.
std::int64_t least_column_panels(const AttentionProblem& problem) {
  return ceil_div(problem.least_columns, panel_width);
}

/// Both folds fill whole tiles, alike because registers of a kernel have fixed shapes; and queries can be
/// loaded as they lie.
bool suits_amx(const Kernel& kernel, const AttentionProblem& problem, const Machine& machine) {
  return machine.amx && problem.element == DType::bf16 && problem.depth % amx_tile_depth == 0 &&
         reads_rows_in_place(kernel.body, problem.q);
}

AttentionTiling attention_tiling(const AttentionProblem& problem, const AttentionNumbers& point) {
  AttentionTiling tiling{};
  tiling.rows = std::min(point.rows, problem.least_rows);
  tiling.row_tiles = std::min(point.row_tiles, problem.least_rows / tiling.rows);
  tiling.key_panels = std::min(point.key_panels, problem.position_panels());
  tiling.value_panels = std::min(point.value_panels, least_column_panels(problem));
  tiling.keys_once = point.keys_once != 0 || problem.batch_loops.empty();
  tiling.pack_values = point.pack_values != 0 || problem.pair() > 1;
  tiling.amx = point.amx != 0;
  return tiling;
}

const std::vector<std::int64_t> attention_rows = {8, 6, 7, 12, 5, 4, 2, 1};

/// Of keys or of columns. Sixteen registers hold two panels of two rows, whose sums are too few to hide the
/// latency of one another; or one of six.
std::int64_t first_panels(const Machine& machine) {
  return has_small_tiles(machine) ? 1 : 2;
}

std::int64_t best_rows(const AttentionProblem& problem, const Machine& machine) {
  std::int64_t best = 1;
  double best_cycles = 1e300;
  for (const std::int64_t rows : up_to(problem.least_rows, attention_rows)) {
    const RegisterTile tile{rows, first_panels(machine)};
    const double cycles = static_cast<double>(ceil_div(problem.rows, rows)) * step_cycles(machine, tile);
    if (!fits_registers(machine, tile) || cycles >= best_cycles) continue;
    best = rows;
    best_cycles = cycles;
  }
  return best;
}

AttentionNumbers first_attention_point(const Kernel& kernel, const AttentionProblem& problem,
                                       const Machine& machine) {
  const bool amx = suits_amx(kernel, problem, machine);
  // Two tiles of rows without a short last block.
  const std::int64_t rows =
      amx ? ceil_div(problem.least_rows, ceil_div(problem.least_rows, 2 * amx_tile_rows))
          : best_rows(problem, machine);
  // The logits and their exponentials of a block take half the L1 or a few tiles, whichever is more.
  const std::int64_t row_bytes = 2 * problem.position_panels() * panel_width * 4;
  const std::int64_t fitting = std::max<std::int64_t>(2, machine.l1_bytes / 2 / row_bytes / rows);
  // Values as they lie are lines far apart, and crowd a few sets of the L1; AVX2's tiles read them often.
  constexpr std::int64_t least_readers = 64;
  const bool few_entries = problem.batch < std::int64_t{2} * machine.threads;
  return {.rows = rows,
          .row_tiles = std::min(fitting, problem.least_rows / rows),
          .key_panels = std::min(first_panels(machine), problem.position_panels()),
          .value_panels = std::min(first_panels(machine), least_column_panels(problem)),
          .keys_once = few_entries ? 1 : 0,
          .pack_values = has_small_tiles(machine) && problem.rows >= least_readers ? 1 : 0,
          .amx = amx ? 1 : 0};
}

struct AttentionRows {
  const Kernel& kernel;
  const Machine& machine;
  AttentionProblem problem;
  AttentionNumbers heuristic;

  [[nodiscard]] std::vector<Range<AttentionNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const AttentionNumbers& point) const;
  [[nodiscard]] double cost(const AttentionNumbers& point) const;
};

std::vector<Range<AttentionNumbers>> AttentionRows::ranges() const {
  const bool amx = suits_amx(kernel, problem, machine);
  const auto range = ranges_from(heuristic);
  using N = AttentionNumbers;
  return {range("rows", &N::rows,
                up_to(problem.least_rows, amx ? std::vector<std::int64_t>{32, 16, 8} : attention_rows)),
          range("row_tiles", &N::row_tiles, up_to(problem.least_rows / heuristic.rows, {1, 2, 4, 8, 16})),
          range("key_panels", &N::key_panels, up_to(problem.position_panels(), {2, 1, 3, 4})),
          range("value_panels", &N::value_panels, up_to(least_column_panels(problem), {2, 1, 3, 4})),
          range("keys_once", &N::keys_once, {0, 1}),
          range("pack_values", &N::pack_values, {0, 1}),
          range("amx", &N::amx, amx ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{0})};
}

std::string joined(std::vector<std::string> first, const std::vector<std::string>& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return fmt::format("{}", fmt::join(first, ", "));
}

/// The stages' own batch dims, as schedules name them: d2, d3, ...
std::vector<std::string> stage_batch(const AttentionProblem& problem) {
  std::vector<std::string> loops;
  loops.reserve(problem.batch_loops.size());
  for (std::size_t i = 0; i < problem.batch_loops.size(); ++i) loops.push_back(fmt::format("d{}", i + 2));
  return loops;
}

/// Loops of the output that other stages are made at.
struct AttentionLevels {
  std::string entry;  ///< one batch entry; empty when there is none, or the panels are made before
  std::string block;  ///< one block of rows
};

/// Splits and orders the output's loops; with threads, the task loops become one parallel loop.
AttentionLevels write_attention_output(ScheduleWriter& writer, const Kernel& kernel, const std::string& out,
                                       const AttentionProblem& problem, const AttentionTiling& tiling,
                                       const Machine& machine) {
  writer.add("{}.split(d0, p, v, {}, TailStrategy::GuardWithIf);", out, panel_width);
  writer.add("{}.split(p, g, q, {}, TailStrategy::ShiftInwards);", out, tiling.value_panels);
  writer.add("{}.split({}, t, i, {}, TailStrategy::ShiftInwards);", out, problem.row_loop,
             tiling.rows * tiling.row_tiles);
  writer.add("{}.split(i, ii, i, {}, TailStrategy::GuardWithIf);", out, tiling.rows);
  writer.add("{}.reorder({}).vectorize(v).unroll(q);", out,
             joined({"v", "q", "i", "ii", "g", "t"}, problem.batch_loops));
  if (!tiling.amx) writer.add("{}.unroll(i);", out);
  std::vector<std::string> tasks = problem.batch_loops;
  if (tiling.keys_once) tasks.insert(tasks.begin(), "t");
  if (machine.threads == 1) return {tiling.keys_once ? "" : tasks[0], "t"};
  const std::size_t tiles = tasks.size() - problem.batch_loops.size();
  const std::string task = writer.parallelize(out, tasks, loops_of_entries(kernel, tiles));
  if (tiling.keys_once) return {"", task};
  return {task, "t"};
}

/// A product of `panels` panels at `level` of `consumer`.
void write_product(ScheduleWriter& writer, const std::string& stage, const std::string& consumer,
                   const std::string& level, std::vector<std::string> folded, bool pairs,
                   const AttentionTiling& tiling, std::int64_t panels,
                   const std::vector<std::string>& batch) {
  writer.add("{}.compute_at({}, {}).store_in(MemoryType::{});", stage, consumer, level,
             tiling.amx ? "Stack" : "Register");
  writer.add("{}.bound_extent(v, {}).bound_extent(p, {}).bound_extent(d1, {});", stage, panel_width, panels,
             tiling.rows);
  if (tiling.amx) {
    writer.add("{}.vectorize(v);", stage);
    writer.add("{}.update(0).{}();", stage, amx_tiles_directive);
    return;
  }
  writer.add("{}.vectorize(v).unroll(p).unroll(d1);", stage);
  std::vector<std::string> order = {"v", "p", "d1"};
  if (pairs) order.insert(order.begin(), "r0");
  order.insert(order.end(), folded.begin() + (pairs ? 1 : 0), folded.end());
  writer.add("{}.update(0).reorder({}){}.vectorize(v).unroll(p).unroll(d1);", stage, joined(order, batch),
             pairs ? ".atomic().vectorize(r0)" : "");
}

/// The softmax of a block, between the logits and the values.
void write_softmax(ScheduleWriter& writer, const std::string& name, const std::string& out,
                   const std::string& block, const std::vector<std::string>& batch) {
  for (const char* stage : {"peaks", "sums"}) {
    writer.add("{}_{}.compute_at({}, {}).vectorize(v);", name, stage, out, block);
    writer.add("{}_{}.update(0).reorder({}).vectorize(v);", name, stage, joined({"v", "r0", "d1"}, batch));
  }
  for (const char* stage : {"max", "sum"}) writer.add("{}_{}.compute_at({}, {});", name, stage, out, block);
  writer.add("{}_exp.compute_at({}, {}).vectorize(v);", name, out, block);
}

/// Panels of keys or values: per batch entry, or whole and in parallel.
void write_panels(ScheduleWriter& writer, const std::string& stage, const std::string& out,
                  const std::string& entry, const AttentionTiling& tiling, const Machine& machine, int pair,
                  const std::vector<std::string>& batch) {
  if (tiling.keys_once) {
    writer.add("{}.compute_root();", stage);
    if (machine.threads > 1) writer.add("{}.parallel({});", stage, batch.empty() ? "p" : batch.back());
  } else {
    writer.add("{}.compute_at({}, {});", stage, out, entry);
  }
  writer.add("{}.bound(v, 0, {}).vectorize(v);", stage, panel_width);
  // Two dense vectors are interleaved into one of pairs.
  if (pair > 1) writer.add("{}.bound(u, 0, {}).unroll(u);", stage, pair);
}

/// Throws UnsupportedError.
void check_tile(const Kernel& kernel, const AttentionProblem& problem, const Machine& machine,
                const AttentionTiling& tiling) {
  const std::int64_t panels = std::max(tiling.key_panels, tiling.value_panels);
  if (tiling.amx && !suits_amx(kernel, problem, machine))
    throw UnsupportedError("AMX does not suit the kernel");
  const bool fits = tiling.amx ? amx_registers(static_cast<int>(ceil_div(tiling.rows, amx_tile_rows)),
                                               static_cast<int>(panels)) <= amx_register_count
                               : fits_registers(machine, {tiling.rows, panels});
  if (fits) return;
  throw UnsupportedError("{} rows of {} panels do not fit {} {} registers", tiling.rows, panels,
                         tiling.amx ? amx_register_count : machine.vector_registers,
                         tiling.amx ? "tile" : "vector");
}

Candidate AttentionRows::at(const AttentionNumbers& point) const {
  const AttentionTiling tiling = attention_tiling(problem, point);
  check_tile(kernel, problem, machine, tiling);
  const std::string out = output_stage(kernel, problem.output);
  const std::string& name = kernel.body.value(problem.anchor).name;
  const std::vector<std::string> batch = stage_batch(problem);
  ScheduleWriter writer;
  const AttentionLevels levels = write_attention_output(writer, kernel, out, problem, tiling, machine);
  const int pair = problem.pair();
  const bool pairs = pair > 1;
  const std::vector<std::string> fold_loops = {"r0", "r1", "r2"};
  write_product(writer, name + "_fold", out, "ii", {fold_loops.begin(), fold_loops.begin() + (pairs ? 3 : 2)},
                pairs, tiling, tiling.value_panels, batch);
  write_single(writer, kernel, name + "_fold", batch);
  write_softmax(writer, name, out, levels.block, batch);
  writer.add("{}_logit.compute_at({}, {});", name, out, levels.block);
  writer.add(
      "{}_logit.split(p, g, p, {}, TailStrategy::ShiftInwards).split(d1, t, i, {}, "
      "TailStrategy::GuardWithIf);",
      name, tiling.key_panels, tiling.rows);
  writer.add("{}_logit.reorder({}).vectorize(v).unroll(p);", name, joined({"v", "p", "i", "t", "g"}, batch));
  if (!tiling.amx) writer.add("{}_logit.unroll(i);", name);
  write_product(writer, name + "_dot", name + "_logit", "t",
                {fold_loops.begin(), fold_loops.begin() + (pairs ? 2 : 1)}, pairs, tiling, tiling.key_panels,
                batch);
  write_single(writer, kernel, name + "_dot", batch);
  write_panels(writer, name + "_keys", out, levels.entry, tiling, machine, pair, batch);
  if (tiling.pack_values)
    write_panels(writer, name + "_values", out, levels.entry, tiling, machine, pair, batch);
  return {Form{"attention_rows", {}}, writer.take()};
}

double AttentionRows::cost(const AttentionNumbers& point) const {
  const AttentionTiling tiling = attention_tiling(problem, point);
  const std::int64_t block = tiling.rows * tiling.row_tiles;
  const double blocks = static_cast<double>(ceil_div(problem.rows, block));
  const double tiles = blocks * static_cast<double>(tiling.row_tiles);
  const std::int64_t depth_steps = problem.depth / problem.pair();
  const std::int64_t position_steps = problem.positions / problem.pair();
  const double dots =
      tiled_cycles(machine, {tiling.rows, tiling.key_panels}, tiles,
                   static_cast<double>(ceil_div(problem.position_panels(), tiling.key_panels)),
                   static_cast<double>(depth_steps));
  const double folds =
      tiled_cycles(machine, {tiling.rows, tiling.value_panels}, tiles,
                   static_cast<double>(ceil_div(column_panels(problem), tiling.value_panels)),
                   static_cast<double>(position_steps));
  constexpr double softmax_cycles = 25;  // per vector
  const double softmax =
      softmax_cycles * static_cast<double>(problem.position_panels()) * blocks * static_cast<double>(block);
  const double packing = 1.5 * static_cast<double>(problem.positions * problem.depth);
  const double values =
      tiling.pack_values ? 0.1 * static_cast<double>(problem.positions * problem.columns) : 0.02 * folds;
  const double entry = dots + folds + softmax + packing + values;
  const double tasks = static_cast<double>(problem.batch) * (tiling.keys_once ? blocks : 1.0);
  return seconds_per_cycle * entry * static_cast<double>(problem.batch) / machine.threads *
         imbalance(tasks, machine.threads);
}

Binding bind_attention(const Kernel& kernel, const Machine& machine) {
  const Reading<AttentionProblem> reading = read_attention(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const AttentionProblem& problem = reading.problem;
  if (std::string refusal = product_refusal(machine, problem.element); !refusal.empty()) return {refusal};
  return bind_space(AttentionRows{kernel, machine, problem, first_attention_point(kernel, problem, machine)});
}

}  // namespace

const Space attention_rows_space = {"attention_rows", bind_attention, {}, Space::Open::all};

}  // namespace sylvite
