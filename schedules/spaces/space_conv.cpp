#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/problems.h"
#include "schedules/directives/even_odd_lanes.h"
#include "schedules/spaces/conv_source.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/spaces.h"

// Spaces conv_blocked and depthwise_blocked, over outputs stored as (channel in block, x, y, block, batch) =
// d0..d4. The loops, innermost first:
//   d0, q   the 16 channels of a block, `blocks` blocks          in registers
//   i, j    `pixels` pixels of `lines` lines                    in registers
//   t       the tiles of a line
//   l       `line_tiles` tiles of lines: with t, one task
//   ll, b   the tasks, `lines_outer` says which is outer; then the batch
// Tails are shifted inwards: some elements are computed twice, so the output must alias no input.

namespace sylvite {
namespace {

/// A point's numbers, clamped to the problem's extents.
struct Tiling {
  std::int64_t pixels;
  std::int64_t lines;
  std::int64_t blocks;
  std::int64_t line_tiles;
  bool lines_outer;
};

RegisterTile register_tile(const ConvProblem& problem, const Tiling& tiling) {
  return {tiling.pixels * tiling.lines, tiling.blocks, std::min(problem.block, panel_width)};
}

Tiling tiling_of(const ConvProblem& problem, const Point& point) {
  Tiling tiling{};
  tiling.pixels = std::min(get(point, "pixels"), problem.out_width);
  tiling.lines = std::min(get(point, "lines"), problem.out_height);
  tiling.blocks = std::min(get(point, "blocks"), problem.out_blocks());
  tiling.line_tiles = std::min(get(point, "line_tiles"), ceil_div(problem.out_height, tiling.lines));
  tiling.lines_outer = get(point, "lines_outer") != 0;
  return tiling;
}

double task_count(const ConvProblem& problem, const Tiling& tiling) {
  const std::int64_t lines = ceil_div(ceil_div(problem.out_height, tiling.lines), tiling.line_tiles);
  return static_cast<double>(problem.batch * lines * ceil_div(problem.out_blocks(), tiling.blocks));
}

/// What it takes in a step of a tile that the source comes from the L2 or from behind it, once for every tile
/// of blocks: few blocks at a time leave little else to do. Only AVX2's tiles have so few.
double source_cycles(const ConvProblem& problem, const Machine& machine, const Tiling& tiling) {
  const std::int64_t bytes = dtype_size(problem.element) * problem.channels * problem.height * problem.width;
  if (!has_small_tiles(machine) || problem.depthwise || bytes <= machine.l1_bytes) return 0;
  const double pixel_cycles = bytes <= machine.l2_bytes / 2 ? 0.25 : 0.5;
  return pixel_cycles * static_cast<double>(tiling.pixels * tiling.lines) /
         static_cast<double>(problem.kernel_x * problem.kernel_y);
}

double tile_cycles(const ConvProblem& problem, const Machine& machine, const Tiling& tiling) {
  const auto tiles = static_cast<double>(problem.batch * ceil_div(problem.out_width, tiling.pixels) *
                                         ceil_div(problem.out_height, tiling.lines));
  const auto block_tiles = static_cast<double>(ceil_div(problem.out_blocks(), tiling.blocks));
  const auto steps = static_cast<double>(problem.fold_steps());
  return tiled_cycles(machine, register_tile(problem, tiling), tiles, block_tiles, steps) +
         tiles * block_tiles * steps * source_cycles(problem, machine, tiling);
}

const std::vector<std::int64_t> pixel_choices = {14, 7, 8, 10, 12, 13, 6, 5, 4, 3, 2, 1};
const std::vector<std::int64_t> line_choices = {1, 2, 4};

std::vector<std::int64_t> block_choices(const ConvProblem& problem) {
  return problem.depthwise ? std::vector<std::int64_t>{1} : up_to(problem.out_blocks(), {2, 4, 3, 1});
}

/// Depthwise in bf16: each stored element is multiplied a few times only, and a vector of them is a block.
bool takes_even_odd(const ConvProblem& problem, const Machine& machine) {
  return problem.depthwise && problem.element == DType::bf16 && machine.bf16_products &&
         problem.block == even_odd_lanes;
}

/// Registers that a depthwise tile takes beside its accumulators count as many again: its unrolled window.
/// Neighbours that share no inputs leave less to keep: there each vector of a block counts. Whole lines have
/// no edges to look for, and are worth spilling a few.
bool is_crowded(const ConvProblem& problem, const Machine& machine, const Tiling& tiling) {
  if (!problem.depthwise) return false;
  const bool even_odd = takes_even_odd(problem, machine);
  const bool apart = problem.stride_x > 1;
  const bool counts = apart || (even_odd && tiling.pixels < problem.out_width);
  const std::int64_t vectors = counts ? ceil_div(problem.block, machine.vector_floats) : 1;
  const std::int64_t window = apart && even_odd ? 2 : 1;
  return 2 * tiling.pixels * tiling.lines * vectors * window > machine.vector_registers;
}

/// The tile that the model likes best; one line at a time, unless lines are short.
Tiling best_tile(const ConvProblem& problem, const Machine& machine) {
  Tiling best{1, 1, 1, 1, false};
  double best_cycles = tile_cycles(problem, machine, best);
  for (const std::int64_t pixels : up_to(problem.out_width, pixel_choices)) {
    for (const std::int64_t lines : up_to(problem.out_height, line_choices)) {
      for (const std::int64_t blocks : block_choices(problem)) {
        const Tiling tiling{pixels, lines, blocks, 1, false};
        const double cycles = tile_cycles(problem, machine, tiling) * (lines > 1 ? 1.03 : 1.0);
        const bool fits =
            fits_registers(machine, register_tile(problem, tiling)) && !is_crowded(problem, machine, tiling);
        if (!fits || cycles >= best_cycles) continue;
        best = tiling;
        best_cycles = cycles;
      }
    }
  }
  return best;
}

/// Filters of the next blocks are fetched while these are multiplied.
std::int64_t stream_distance(const ConvProblem& problem) {
  constexpr std::int64_t least_bytes = 64 << 10;
  const auto element_bytes = static_cast<std::int64_t>(dtype_size(problem.element));
  const std::int64_t bytes =
      element_bytes * problem.fold_steps() * problem.pair() * problem.out_blocks() * problem.block;
  return problem.depthwise || bytes < least_bytes ? 0 : 1;
}

/// Each thread takes a run of tasks: lines of the image, which it then finds in its own cache when it wrote
/// the same lines before, or blocks of channels, whose filters no other thread reads. Depthwise follows its
/// neighbours, whose filters are about so large.
bool divides_lines(const ConvProblem& problem) {
  const std::int64_t filter =
      problem.depthwise ? problem.channels / 6 : problem.out_channels * problem.kernel_x * problem.kernel_y;
  return 2 * filter < problem.height * problem.width;
}

Point heuristic_point(const ConvProblem& problem, const Machine& machine) {
  const Tiling tile = best_tile(problem, machine);
  const std::int64_t tiles = ceil_div(problem.out_height, tile.lines);
  Point point = {{"pixels", tile.pixels}, {"lines", tile.lines}, {"blocks", tile.blocks},
                 {"line_tiles", tiles},   {"lines_outer", 0},    {"unroll_channels", 1},
                 {"copy_source", 0}};
  // Depthwise is bound by memory where it is large: there a select costs less than another copy.
  const bool selects = problem.padded && problem.depthwise;
  if ((problem.padded && !selects) || problem.x_is_computed || !problem.x_is_blocked)
    point["copy_source"] = 1;
  if (machine.threads > 1) {
    const std::int64_t others = problem.batch * ceil_div(problem.out_blocks(), tile.blocks);
    const std::int64_t threads = machine.threads;
    const std::int64_t least = divides_lines(problem) ? 2 * threads : 1;
    point["line_tiles"] = tiles_in_task(tiles, std::max(least, ceil_div(4 * threads, others)));
    point["lines_outer"] = divides_lines(problem) ? 1 : 0;
  }
  point["stream_ahead"] = stream_distance(problem);
  point["even_odd"] = takes_even_odd(problem, machine) ? 1 : 0;
  return point;
}

std::vector<Parameter> tiling_parameters(const ConvProblem& problem, const Machine& machine) {
  const Point first = heuristic_point(problem, machine);
  const std::int64_t tiles = ceil_div(problem.out_height, first.at("lines"));
  const auto values = [&](const std::string& name, const std::vector<std::int64_t>& choices) {
    return Parameter{name, starting_with(first.at(name), choices)};
  };
  std::vector<Parameter> parameters = {values("pixels", up_to(problem.out_width, pixel_choices)),
                                       values("blocks", block_choices(problem)),
                                       values("lines", up_to(problem.out_height, line_choices)),
                                       values("line_tiles", up_to(tiles, {1, 2, 4, 8, tiles})),
                                       values("lines_outer", {0, 1}),
                                       values("copy_source", {0, 1})};
  const std::vector<std::int64_t> no_or_yes = {0, 1}, only_no = {0};
  const bool unrolls_all = problem.fold_block <= unrolled_channels;
  const auto unless_depthwise = [&](std::int64_t only, const std::vector<std::int64_t>& choices) {
    return problem.depthwise ? std::vector<std::int64_t>{only} : choices;
  };
  parameters.push_back(
      values("unroll_channels", unrolls_all ? std::vector<std::int64_t>{1} : unless_depthwise(1, {1, 2, 4})));
  parameters.push_back(values("even_odd", takes_even_odd(problem, machine) ? no_or_yes : only_no));
  parameters.push_back(values("stream_ahead", unless_depthwise(0, {0, 1, 2})));
  return parameters;
}

/// Splits and orders the output's loops; with threads, every task loop becomes one parallel loop.
void write_output(ScheduleWriter& writer, const std::string& out, const Tiling& tiling,
                  const Machine& machine) {
  writer.add("{}.split(d3, b, q, {}, TailStrategy::ShiftInwards);", out, tiling.blocks);
  writer.add("{}.split(d1, t, i, {}, TailStrategy::ShiftInwards);", out, tiling.pixels);
  writer.add("{}.split(d2, l, j, {}, TailStrategy::ShiftInwards);", out, tiling.lines);
  writer.add("{}.split(l, ll, l, {}, TailStrategy::GuardWithIf);", out, tiling.line_tiles);
  const char* tasks = tiling.lines_outer ? "b, ll" : "ll, b";
  writer.add("{}.reorder(d0, q, i, j, t, l, {}, d4).vectorize(d0).unroll(q).unroll(i).unroll(j);", out,
             tasks);
  if (machine.threads > 1)
    writer.add("{}.fuse({}, task1).fuse(task1, d4, task2).parallel(task2);", out, tasks);
}

void write_fold(ScheduleWriter& writer, const ConvProblem& problem, const std::string& fold,
                const std::string& out, std::int64_t unroll_channels) {
  writer.add("{}.compute_at({}, t).store_in(MemoryType::Register);", fold, out);
  writer.add("{}.vectorize(d0).unroll(d3).unroll(d1).unroll(d2);", fold);
  if (problem.depthwise) {
    writer.add("{}.update(0).reorder(d0, d1, d2, d3, r0, r1, d4).vectorize(d0).unroll(d1).unroll(d2);", fold);
    if (problem.kernel_x * problem.kernel_y <= 25) writer.add("{}.update(0).unroll(r0).unroll(r1);", fold);
    return;
  }
  const bool pairs = problem.pair() > 1;
  writer.add("{}.update(0).reorder({}, d4);", fold,
             pairs ? "r0, d0, d3, d1, d2, r1, r2, r3, r4" : "d0, d3, d1, d2, r0, r1, r2, r3");
  if (pairs) writer.add("{}.update(0).atomic().vectorize(r0);", fold);
  writer.add("{}.update(0).vectorize(d0).unroll(d3).unroll(d1).unroll(d2);", fold);
  const char* channels = pairs ? "r1" : "r0";
  if (problem.fold_block <= unrolled_channels)
    writer.add("{}.update(0).unroll({});", fold, channels);
  else if (unroll_channels > 1)
    writer.add("{}.update(0).unroll({}, {});", fold, channels, unroll_channels);
}

Candidate tiled_candidate(const Kernel& kernel, const Machine& machine, bool depthwise, const Point& point) {
  const ConvProblem problem = read_conv(kernel, depthwise).problem;
  const Tiling tiling = tiling_of(problem, point);
  if (!fits_registers(machine, register_tile(problem, tiling))) {
    throw UnsupportedError("{} x {} pixels of {} blocks do not fit {} vector registers", tiling.lines,
                           tiling.pixels, tiling.blocks, machine.vector_registers);
  }
  const std::int64_t unroll_channels = get(point, "unroll_channels");
  const bool even_odd = get(point, "even_odd") != 0;
  const int channel_steps = problem.fold_block / problem.pair();
  if (unroll_channels > 1 && channel_steps % unroll_channels != 0)
    throw UnsupportedError("{} steps of channels cannot be unrolled by {}", channel_steps, unroll_channels);
  const std::string out = output_stage(kernel, problem.output);
  const std::string& name = kernel.body.value(problem.anchor).name;
  ScheduleWriter writer;
  write_output(writer, out, tiling, machine);
  write_fold(writer, problem, name + "_fold", out, unroll_channels);
  if (even_odd) writer.add("{}.{}();", out, even_odd_lanes_directive);
  if (get(point, "copy_source") != 0) write_conv_source(writer, problem, name + "_in", machine);
  if (const std::int64_t distance = get(point, "stream_ahead"); distance > 0) {
    const bool repeats_lines = machine.threads == 1 && !tiling.lines_outer;
    write_stream(writer, kernel, problem.weight, out, repeats_lines ? "ll" : "l", distance);
  }
  return {Form{depthwise ? "depthwise_blocked" : "conv_blocked", {}}, writer.take()};
}

double tiled_cost(const Kernel& kernel, const Machine& machine, bool depthwise, const Point& point) {
  const ConvProblem problem = read_conv(kernel, depthwise).problem;
  const Tiling tiling = tiling_of(problem, point);
  double cycles = tile_cycles(problem, machine, tiling);
  const bool copies = get(point, "copy_source") != 0;
  if (!copies && problem.padded) cycles *= depthwise ? 1.4 : 2.0;
  if (!copies && !problem.x_is_blocked) cycles *= 1.5;
  constexpr double bytes_per_cycle = 8;
  const auto element_bytes = static_cast<double>(dtype_size(problem.element));
  const double source_bytes =
      element_bytes * static_cast<double>(problem.batch * problem.channels * problem.height * problem.width);
  if (copies) cycles += source_bytes * (problem.x_is_blocked ? 2.0 : 6.0) / bytes_per_cycle;
  // The filter of a task is read again by every tile of it; beyond the L2 that costs.
  const double filter_bytes = element_bytes * static_cast<double>(problem.fold_steps() * problem.pair() *
                                                                  tiling.blocks * problem.block);
  if (filter_bytes > 0.75 * static_cast<double>(machine.l2_bytes)) cycles *= 1.1;
  const double tasks = task_count(problem, tiling);
  constexpr double task_cycles = 600;
  return seconds_per_cycle / machine.threads *
         (cycles * imbalance(tasks, machine.threads) + task_cycles * tasks);
}

template <bool depthwise>
Space conv_space(const char* name) {
  return {
      .name = name,
      .refuses =
          [](const Kernel& kernel, const Machine& machine) {
            const Reading<ConvProblem> reading = read_conv(kernel, depthwise);
            if (!reading.refusal.empty() || depthwise) return reading.refusal;
            return product_refusal(machine, reading.problem.element);
          },
      .parameters =
          [](const Kernel& kernel, const Machine& machine) {
            return tiling_parameters(read_conv(kernel, depthwise).problem, machine);
          },
      .heuristic =
          [](const Kernel& kernel, const Machine& machine) {
            return heuristic_point(read_conv(kernel, depthwise).problem, machine);
          },
      .at = [](const Kernel& kernel, const Machine& machine,
               const Point& point) { return tiled_candidate(kernel, machine, depthwise, point); },
      .cost = [](const Kernel& kernel, const Machine& machine,
                 const Point& point) { return tiled_cost(kernel, machine, depthwise, point); },
  };
}

}  // namespace

const Space conv_blocked_space = conv_space<false>("conv_blocked");
const Space depthwise_blocked_space = conv_space<true>("depthwise_blocked");

}  // namespace sylvite
