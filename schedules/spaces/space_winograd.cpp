#include <algorithm>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/problems.h"
#include "schedules/bind_space.h"
#include "schedules/spaces/conv_source.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/spaces.h"

// Space conv_winograd, over outputs stored as (channel in block, x, y, block, batch) = d0..d4. A Winograd
// tile is `tile` x `tile` outputs, (tile+2)^2 products. The loops of the output, innermost first:
//   d0, i, j  a Winograd tile of one block: transformed back in registers
//   t, l      the tiles of a line; `tile_lines` lines of tiles
//   q         `blocks` blocks. For d0 to q, all products of its tiles are made before: `columns` x `lines`
//             tiles of `blocks` blocks in registers, so that a filter is read once for all lines of tiles
//   ll, g     groups of lines of tiles, groups of blocks. Where the transformed input is made:
//             input_first = 0: for the lines of a task, in front of its blocks: g inside, tasks are ll
//             input_first = 1: all of it ahead, in the memory of all cores: ll inside, tasks are both
// `together`: what of a tile's transformed input lies side by side. 0: each place of all tiles; 1: all places of a line of
// tiles, so that fewer pages are written at a time; 2: all places of a tile, which are then read further apart.
// Tails of d3 are shifted inwards: some elements are computed twice, so the output must alias no input.

namespace sylvite {
namespace {

struct WinogradNumbers {
  std::int64_t tile = 4;
  std::int64_t columns = 1;
  std::int64_t lines = 1;
  std::int64_t blocks = 1;
  std::int64_t tile_lines = 1;
  std::int64_t input_first = 0;
  std::int64_t copy_source = 0;
  std::int64_t unroll_channels = 1;
  std::int64_t stream_ahead = 0;
  std::int64_t together = 0;
};

/// A point's numbers, clamped to the problem's extents.
struct WinogradTiling {
  std::int64_t tile;
  std::int64_t columns;
  std::int64_t lines;
  std::int64_t blocks;
  std::int64_t tile_lines;
  bool input_first;

  std::int64_t across = 0;  ///< tiles of a line
  std::int64_t down = 0;    ///< lines of tiles
  /// Some task has lines that are no multiple of those at once.
  [[nodiscard]] bool leaves_lines() const {
    return tile_lines % lines != 0 || down % tile_lines % lines != 0;
  }
  [[nodiscard]] double places() const { return static_cast<double>((tile + 2) * (tile + 2)); }
};

WinogradTiling winograd_tiling(const ConvProblem& problem, const WinogradNumbers& point) {
  WinogradTiling tiling{};
  tiling.tile = point.tile;
  tiling.across = ceil_div(problem.out_width, tiling.tile);
  tiling.down = ceil_div(problem.out_height, tiling.tile);
  tiling.columns = std::min(point.columns, tiling.across);
  tiling.tile_lines = std::min(point.tile_lines, tiling.down);
  tiling.lines = std::min(point.lines, tiling.tile_lines);
  tiling.blocks = std::min(point.blocks, problem.out_blocks());
  tiling.input_first = point.input_first != 0;
  return tiling;
}

RegisterTile winograd_register_tile(const ConvProblem& problem, const WinogradTiling& tiling) {
  return {tiling.columns * tiling.lines, tiling.blocks, problem.block};
}

// ---- cost -------------------------------------------------------------------------------------------------

/// Bytes that a core reads in a cycle, beside computing.
constexpr double l3_bytes_per_cycle = 14;
constexpr double memory_bytes_per_cycle = 5;

/// Both transforms: loads, multiply-adds and stores of vectors, at two a cycle.
double transform_cycles(const ConvProblem& problem, const Machine& machine, const WinogradTiling& tiling) {
  const double vectors = static_cast<double>(problem.block) / machine.vector_floats;
  const auto tiles = static_cast<double>(problem.batch * tiling.across * tiling.down);
  const auto outputs = static_cast<double>(tiling.tile * tiling.tile);
  const double in = 3.0 * tiling.places() * static_cast<double>(problem.source_blocks());
  const double out = (2.5 * tiling.places() + 1.5 * outputs) * static_cast<double>(problem.out_blocks());
  return tiles * vectors * (in + out);
}

/// The filters of a place that a tile reads, once for every tile.
double step_filter_cycles(const ConvProblem& problem, const Machine& machine, const WinogradTiling& tiling) {
  const bool stay = 4 * problem.channels * tiling.blocks * problem.block <= machine.l1_bytes / 2;
  return stay ? 0 : wait_for_l2(machine, winograd_register_tile(problem, tiling));
}

/// Lines of tiles that are computed in all: a task of fewer lines than others has no more than it rounds up to.
std::int64_t computed_lines(const WinogradTiling& tiling) {
  const std::int64_t whole = tiling.down / tiling.tile_lines * ceil_div(tiling.tile_lines, tiling.lines);
  return whole + ceil_div(tiling.down % tiling.tile_lines, tiling.lines);
}

double product_cycles(const ConvProblem& problem, const Machine& machine, const WinogradTiling& tiling) {
  const auto tiles =
      static_cast<double>(problem.batch * ceil_div(tiling.across, tiling.columns) * computed_lines(tiling));
  const auto block_tiles = static_cast<double>(ceil_div(problem.out_blocks(), tiling.blocks));
  const auto steps = static_cast<double>(problem.channels);
  return tiling.places() *
         (tiled_cycles(machine, winograd_register_tile(problem, tiling), tiles, block_tiles, steps) +
          tiles * block_tiles * steps * step_filter_cycles(problem, machine, tiling));
}

/// Groups of lines of all images, the last of each as part of one.
double line_groups(const ConvProblem& problem, const WinogradTiling& tiling) {
  const double groups = static_cast<double>(tiling.down) / static_cast<double>(tiling.tile_lines);
  return static_cast<double>(problem.batch) * std::max(1.0, groups);
}

/// Products, while filters come from memory once, and from the L3 for every further group of lines: half of that is not hidden.
double filtered_cycles(const ConvProblem& problem, const Machine& machine, const WinogradTiling& tiling) {
  const double products = product_cycles(problem, machine, tiling);
  const double bytes =
      4 * tiling.places() * static_cast<double>(problem.channels * problem.out_blocks() * problem.block);
  const bool stays = bytes < 0.5 * static_cast<double>(machine.l2_bytes);
  const double again = stays ? 0.0 : (line_groups(problem, tiling) - 1) * bytes / l3_bytes_per_cycle;
  return std::max(products, bytes / memory_bytes_per_cycle + again) + 0.5 * std::min(products, again);
}

/// Transformed inputs of a task that the L2 does not hold go to the L3, and come back for each group of blocks. It keeps a quarter
/// of its size of them and of products beside all that passes through, and less and less of what is more.
double spill_cycles(const ConvProblem& problem, const Machine& machine, const WinogradTiling& tiling) {
  constexpr double bytes_per_cycle = 10;  // back and forth, measured with 16 to 512 channels
  const auto tiles = static_cast<double>(tiling.across * tiling.tile_lines);
  const double input =
      4 * tiling.places() * tiles * static_cast<double>(problem.source_blocks() * problem.source_block);
  const double products = 4 * tiling.places() * tiles * static_cast<double>(tiling.blocks * problem.block);
  const auto l2_bytes = static_cast<double>(machine.l2_bytes);
  const double share = std::clamp((input + products) / l2_bytes - 0.25, 0.0, 1.0);
  const auto readings = static_cast<double>(ceil_div(problem.out_blocks(), tiling.blocks));
  return line_groups(problem, tiling) * share * input * (1 + readings) / bytes_per_cycle;
}

double winograd_tasks(const ConvProblem& problem, const WinogradTiling& tiling) {
  const std::int64_t lines = problem.batch * ceil_div(tiling.down, tiling.tile_lines);
  return static_cast<double>(tiling.input_first ? lines * ceil_div(problem.out_blocks(), tiling.blocks)
                                                : lines);
}

double winograd_cost(const ConvProblem& problem, const Machine& machine, const WinogradNumbers& point) {
  WinogradTiling tiling = winograd_tiling(problem, point);
  tiling.columns = point.columns;  // kernels of open images compute them all, though an image has fewer
  tiling.lines = point.lines;
  double cycles = filtered_cycles(problem, machine, tiling) + transform_cycles(problem, machine, tiling) +
                  spill_cycles(problem, machine, tiling);
  if (point.copy_source != 0)
    cycles += 4.0 * static_cast<double>(problem.channels * problem.height * problem.width) / 4;
  else if (!problem.x_is_blocked || problem.x_is_computed)
    cycles *= 1.5;
  const double tasks = winograd_tasks(problem, tiling);
  constexpr double task_cycles = 1000;
  constexpr double first_cycles = 3000;  // of another parallel loop
  if (tiling.input_first) cycles += first_cycles;
  return seconds_per_cycle / machine.threads *
         (cycles * imbalance(tasks, machine.threads) + task_cycles * tasks);
}

// ---- points -----------------------------------------------------------------------------------------------

/// With so few, most of the time goes into transforms, not into products.
constexpr std::int64_t few_channels = 32;

std::vector<Range<WinogradNumbers>> choices(const ConvProblem& problem) {
  const int unrolled = problem.fold_block <= unrolled_channels ? problem.fold_block : 1;
  const std::int64_t down = ceil_div(problem.out_height, 2);
  const std::int64_t across = ceil_div(problem.out_width, 2);
  const bool copies = problem.x_is_computed || !problem.x_is_blocked;
  using N = WinogradNumbers;
  return {{"tile", &N::tile, {4, 2}},
          {"columns", &N::columns, up_to(across, {14, 7, 8, 10, 6, 5, 4, 3, 2, 1})},
          {"lines", &N::lines, up_to(down, {1, 2, 3, 4})},
          {"blocks", &N::blocks, up_to(problem.out_blocks(), {2, 4, 3, 1})},
          {"tile_lines", &N::tile_lines, up_to(down, {1, 2, 4, 7, 14})},
          {"input_first", &N::input_first, {0, 1}},
          {"copy_source", &N::copy_source,
           copies ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{0}},
          {"unroll_channels", &N::unroll_channels, starting_with(unrolled, {1, 2, 4})},
          {"stream_ahead", &N::stream_ahead, {1, 0, 2}},
          {"together", &N::together, starting_with(problem.channels <= few_channels ? 2 : 1, {1, 2, 0})}};
}

/// The cheapest point by cost among those that make a schedule; unrolling, prefetching and storage are left to
/// measurement.
WinogradNumbers cheapest_point(const ConvProblem& problem, const Machine& machine) {
  const std::vector<Range<WinogradNumbers>> ranges = choices(problem);
  WinogradNumbers best;
  double best_cost = std::numeric_limits<double>::max();
  const auto search = [&](const auto& self, WinogradNumbers& point, std::size_t depth) -> void {
    if (depth == ranges.size()) {
      if (!fits_registers(machine, winograd_register_tile(problem, winograd_tiling(problem, point)))) return;
      const double cost = winograd_cost(problem, machine, point);
      if (cost < best_cost) std::tie(best, best_cost) = std::tuple(point, cost);
      return;
    }
    const Range<WinogradNumbers>& range = ranges[depth];
    const bool is_fixed = range.number == &WinogradNumbers::unroll_channels ||
                          range.number == &WinogradNumbers::stream_ahead ||
                          range.number == &WinogradNumbers::together;
    const std::size_t count = is_fixed ? 1 : range.values.size();
    for (std::size_t i = 0; i < count; ++i) {
      point.*range.number = range.values[i];
      self(self, point, depth + 1);
    }
  };
  WinogradNumbers point;
  search(search, point, 0);
  return best;
}

struct Winograd {
  const Kernel& kernel;
  const Machine& machine;
  ConvProblem problem;
  ImageRoom room;
  WinogradNumbers heuristic;

  [[nodiscard]] std::vector<Range<WinogradNumbers>> ranges() const {
    std::vector<Range<WinogradNumbers>> ranges = choices(problem);
    for (Range<WinogradNumbers>& range : ranges)
      range.values = starting_with(heuristic.*range.number, range.values);
    return ranges;
  }
  [[nodiscard]] Candidate at(const WinogradNumbers& point) const;
  [[nodiscard]] double cost(const WinogradNumbers& point) const {
    return winograd_cost(problem, machine, point);
  }
};

// ---- schedule ---------------------------------------------------------------------------------------------

/// Where the output's loops are cut.
struct WinogradLevels {
  std::string products;  ///< inside: one group of blocks, one group of lines
  std::string input;     ///< the loop of a task; with input_first, not used
};

/// Splits and orders the output's loops; with threads, the task loops become one parallel loop.
WinogradLevels write_winograd_output(ScheduleWriter& writer, const std::string& out,
                                     const WinogradTiling& tiling, const Machine& machine) {
  writer.add("{}.split(d3, g, q, {}, TailStrategy::ShiftInwards);", out, tiling.blocks);
  writer.add("{}.split(d1, t, i, {}, TailStrategy::GuardWithIf);", out, tiling.tile);
  writer.add("{}.split(d2, l, j, {}, TailStrategy::GuardWithIf);", out, tiling.tile);
  writer.add("{}.split(l, ll, l, {}, TailStrategy::GuardWithIf);", out, tiling.tile_lines);
  const char* order = tiling.input_first ? "ll, g" : "g, ll";
  writer.add("{}.reorder(d0, i, j, t, l, q, {}, d4).vectorize(d0).unroll(i).unroll(j);", out, order);
  if (machine.threads == 1) return {tiling.input_first ? "ll" : "g", "ll"};
  if (tiling.input_first) {
    writer.add("{}.fuse(ll, g, task1).fuse(task1, d4, task2).parallel(task2);", out);
    return {"task2", ""};
  }
  writer.add("{}.fuse(ll, d4, task1).parallel(task1);", out);
  return {"g", "task1"};
}

void write_products(ScheduleWriter& writer, const std::string& name, const std::string& out,
                    const WinogradLevels& levels, const WinogradTiling& tiling,
                    std::int64_t unroll_channels) {
  writer.add("{}_columns.compute_at({}, t).store_in(MemoryType::Stack).vectorize(d0).unroll(i).unroll(j);",
             name, out);
  writer.add("{}_products.compute_at({}, {}).bound_extent(d3, {});", name, out, levels.products,
             tiling.blocks);
  writer.add("{}_products.split(t1, c, t1, {}, TailStrategy::ShiftInwards);", name, tiling.columns);
  writer.add("{}_products.split(t2, l, t2, {}, TailStrategy::RoundUp);", name, tiling.lines);
  writer.add("{}_products.reorder(d0, d3, t1, t2, c, l, i, j, d4);", name);
  writer.add("{}_products.vectorize(d0).unroll(d3).unroll(t1).unroll(t2);", name);
  writer.add("{0}_fold.compute_at({0}_products, c).store_in(MemoryType::Register);", name);
  writer.add("{}_fold.vectorize(d0).unroll(d3).unroll(t1).unroll(t2);", name);
  writer.add("{}_fold.update(0).reorder(d0, d3, t1, t2, r0, r1, i, j, d4);", name);
  writer.add("{}_fold.update(0).vectorize(d0).unroll(d3).unroll(t1).unroll(t2);", name);
  if (unroll_channels > 1) writer.add("{}_fold.update(0).unroll(r0, {});", name, unroll_channels);
}

void write_input(ScheduleWriter& writer, const ConvProblem& problem, const std::string& name,
                 const std::string& out, const WinogradLevels& levels, const WinogradTiling& tiling,
                 const Machine& machine, std::int64_t together) {
  if (tiling.input_first)
    writer.add("{}_tiles.compute_root();", name);
  else
    writer.add("{}_tiles.compute_at({}, {});", name, out, levels.input);
  writer.add("{}_tiles.reorder(d0, i, j, t1, t2, d3, d4).vectorize(d0).unroll(i).unroll(j);", name);
  if (together != 0)
    writer.add("{}_tiles.reorder_storage(d0, {}, t2, d3, d4);", name,
               together == 1 ? "t1, i, j" : "i, j, t1");
  if (tiling.input_first && machine.threads > 1) {
    const bool by_block = problem.source_blocks() >= std::int64_t{2} * machine.threads;
    writer.add("{}_tiles.parallel({});", name, by_block ? "d3" : "t2");
  }
  writer.add(
      "{0}_rows.compute_at({0}_tiles, t1).store_in(MemoryType::Stack).vectorize(d0).unroll(i).unroll(j);",
      name);
}

Candidate Winograd::at(const WinogradNumbers& point) const {
  const WinogradTiling tiling = winograd_tiling(problem, point);
  if (!fits_registers(machine, winograd_register_tile(problem, tiling))) {
    throw UnsupportedError("{} x {} tiles of {} blocks do not fit {} vector registers", tiling.lines,
                           tiling.columns, tiling.blocks, machine.vector_registers);
  }
  if (point.unroll_channels > 1 && problem.fold_block % point.unroll_channels != 0)
    throw UnsupportedError("{} channels cannot be unrolled by {}", problem.fold_block, point.unroll_channels);
  const std::string out = output_stage(kernel, problem.output);
  const std::string& name = kernel.body.value(problem.anchor).name;
  Form form{"conv_winograd", {{"tile", tiling.tile}}};
  if (room.is_open) form.parameters["columns"] = tiling.columns;
  ScheduleWriter writer;
  const WinogradLevels levels = write_winograd_output(writer, out, tiling, machine);
  write_products(writer, name, out, levels, tiling, point.unroll_channels);
  write_input(writer, problem, name, out, levels, tiling, machine, point.together);
  // Products of lines that were never written may be of denormal numbers, which are slow.
  if (room.is_open ? tiling.lines > 1 : tiling.leaves_lines())
    writer.add("{}_tiles.align_bounds(t2, {});", name, tiling.lines);
  if (room.is_open) {
    write_few_edges(writer, name + "_tiles", {"t1", "t2"});
    write_few_edges(writer, out, {"l", tiling.input_first ? levels.products : levels.input});
  }
  if (point.copy_source != 0) write_conv_source(writer, problem, name + "_in", machine);
  if (point.stream_ahead > 0)
    write_stream(writer, kernel, problem.weight, name + "_products", "l", point.stream_ahead);
  return {form, writer.take()};
}

Binding bind_winograd(const Kernel& kernel, const Machine& machine) {
  if (!machine.winograd) return {"schedules.winograd is off"};
  const Reading<ConvProblem> reading = read_winograd(kernel);
  if (!reading.refusal.empty()) return {reading.refusal};
  const ImageRoom room = room_of(kernel, reading.problem);
  return bind_space(
      Winograd{kernel, machine, reading.problem, room, cheapest_point(reading.problem, machine)});
}

}  // namespace

/// Transforms cost as much in small convolutions as in large ones.
const Space conv_winograd_space = {"conv_winograd", bind_winograd, "conv_blocked", Space::Open::all};

}  // namespace sylvite
