#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/problems.h"
#include "schedules/bind_space.h"
#include "schedules/directives/even_odd_lanes.h"
#include "schedules/spaces/conv_source.h"
#include "schedules/spaces/conv_tile.h"
#include "schedules/spaces/spaces.h"

// Spaces conv_blocked and depthwise_blocked, over outputs stored as (channel in block, x, y, block, batch) =
// d0..d4. The loops, innermost first:
//   d0, q   the 16 channels of a block, `blocks` blocks          in registers
//   i, j    `pixels` pixels of `lines` lines                    in registers
//   t       the tiles of a line
//   l       `line_tiles` tiles of lines: with t, one task. Of an open image of one line, tiles of that line
//   ll, b   the tasks, `lines_outer` says which is outer; then the batch
// `copy_source`: 1 copies the image with its border ahead of all; 2 copies the lines of ll, and one task does all b of them.
// `slices`: 1 folds a block of channels after the other, each for all pixels of a task, whose sums wait in memory. Tails are
// shifted inwards: some elements are computed twice, so the output must alias no input.

namespace sylvite {
namespace {
/// Filters of the next blocks are fetched while these are multiplied.
std::int64_t conv_stream_distance(const ConvProblem& problem) {
  constexpr std::int64_t least_bytes = 64 << 10;
  const bool is_small = filter_bytes(problem, problem.out_blocks()) < least_bytes;
  return problem.depthwise || problem.packs_weight || is_small ? 0 : 1;
}

/// How many tiles of lines a task copies to the L2, where their pixels do not crowd it, before all blocks of outputs are made
/// of them. 0: copies are not worth it; planes that lie well are read as fast where they are.
std::int64_t copied_tiles(const ConvProblem& problem, const Machine& machine, const ConvTiling& tile) {
  constexpr std::int64_t least_reads = 4;  // of a copy
  const std::int64_t pixel = static_cast<std::int64_t>(dtype_size(problem.element)) * problem.channels;
  const bool reads_all = problem.kernel_x >= problem.stride_x && problem.kernel_y >= problem.stride_y;
  if (problem.depthwise || problem.groups > 1 || !problem.x_is_blocked || !reads_all) return 0;
  if (pixel * problem.height * problem.width <= machine.l2_bytes || !crowds_cache(problem)) return 0;
  if (ceil_div(problem.out_blocks(), tile.blocks) < least_reads) return 0;
  const std::int64_t width =
      (problem.out_width - 1) * problem.stride_x + (problem.kernel_x - 1) * problem.dilation_x + 1;
  const std::int64_t tiles = ceil_div(problem.out_height, tile.lines);
  const std::int64_t images = std::max<std::int64_t>(problem.batch, 1);  // open: at least one
  const std::int64_t tasks = machine.threads > 1 ? ceil_div(2 * machine.threads, images) : 1;
  for (std::int64_t count = std::max<std::int64_t>(tiles / tasks, 1); count > 0; --count) {
    const std::int64_t lines =
        (count * tile.lines - 1) * problem.stride_y + (problem.kernel_y - 1) * problem.dilation_y + 1;
    if (tiles % count == 0 && pixel * width * lines <= machine.l2_bytes / 4) return count;
  }
  return 0;
}

/// REQUIRES sizes that are not open: the memory of a task's sums is counted.
bool can_slice(const ConvProblem& problem) {
  return !problem.depthwise && problem.groups == 1 && problem.x_is_blocked && !problem.packs_weight &&
         problem.pair() == 1 && problem.fold_block > 1;
}

/// Do a tile's filters alone exceed what the L2 has room for, and the image, too? Each tile then waits for all of both, a
/// line from each of thousands of places: in dilated convolutions of many channels, four times as long.
bool pays_to_slice(const ConvProblem& problem, const Machine& machine, const ConvTiling& tile) {
  if (!can_slice(problem) || problem.kernel_x * problem.kernel_y == 1) return false;
  const std::int64_t width =
      (problem.out_width - 1) * problem.stride_x + (problem.kernel_x - 1) * problem.dilation_x;
  const std::int64_t height =
      (problem.out_height - 1) * problem.stride_y + (problem.kernel_y - 1) * problem.dilation_y;
  const auto bytes = static_cast<std::int64_t>(dtype_size(problem.element));
  return filter_bytes(problem, tile.blocks) > machine.l2_bytes / 2 &&
         bytes * problem.channels * (width + 1) * (height + 1) > machine.l2_bytes;
}

/// As many lines to a task as have room for their sums, and as leave tasks for all threads.
void set_slices(const ConvProblem& problem, const ImageRoom& room, const Machine& machine,
                ConvNumbers& point) {
  const ConvTiling tile = best_conv_tile(problem, room, machine, true);
  point.pixels = tile.pixels;
  point.lines = tile.lines;
  point.blocks = tile.blocks;
  const std::int64_t tiles = problem.out_height / tile.lines;
  const std::int64_t most = std::max<std::int64_t>(1, most_conv_sums / sums_of_lines(problem, tile));
  const std::int64_t others = problem.batch * ceil_div(problem.out_blocks(), tile.blocks);
  const std::int64_t parts = ceil_div(machine.threads > 1 ? 2 * machine.threads : 1, others);
  point.line_tiles = tiles_in_task(tiles, std::max(ceil_div(tiles, most), parts));
  point.lines_outer = 0;
  point.stream_ahead = 0;
  point.slices = 1;
}

/// How many tiles of an open image a task takes, so that all blocks of outputs are made of what the L2 keeps of it: runs may have
/// larger images than the one that it is near. 0: what several such tasks read of the filters would be more.
std::int64_t kept_tiles(const ConvProblem& problem, const ImageRoom& room, const Machine& machine,
                        const ConvTiling& tile) {
  if (!room.is_open || problem.depthwise || problem.groups > 1 || !problem.x_is_blocked) return 0;
  const auto bytes = static_cast<std::int64_t>(dtype_size(problem.element));
  const std::int64_t room_bytes = machine.l2_bytes / 8 * 5;
  if (filter_bytes(problem, tile.blocks) > room_bytes / 4) return 0;
  const std::int64_t pixels =
      tile.is_line ? tile.pixels * problem.stride_x : tile.lines * problem.stride_y * problem.width;
  return std::max<std::int64_t>(1, room_bytes / (bytes * problem.channels * pixels));
}

/// Does each thread take a run of pixels? An open line may be the pixels of several images, which kernels of whole images divide among threads: blocks of channels
/// would have every thread read and write parts of what another has in its cache. That is worth reading all filters, unless
/// they are more; caches of others are up to three times as far as the one that all share.
bool threads_take_pixels(const ConvProblem& problem) {
  constexpr double of_others = 1.5;
  const auto bytes = static_cast<double>(dtype_size(problem.element));
  const auto moved = static_cast<double>(problem.out_width * (problem.channels + problem.out_channels));
  return static_cast<double>(filter_bytes(problem, problem.out_blocks())) < of_others * bytes * moved;
}

ConvNumbers first_conv_point(const ConvProblem& problem, const ImageRoom& room, const Machine& machine) {
  const ConvTiling tile = best_conv_tile(problem, room, machine);
  const std::int64_t tiles = tiles_to_divide(problem, tile);
  ConvNumbers point{.pixels = tile.pixels, .lines = tile.lines, .blocks = tile.blocks, .line_tiles = tiles};
  // Depthwise is bound by memory where it is large: there a select costs less than another copy, unless large windows read
  // each element often.
  const bool selects = problem.padded && problem.depthwise && !has_large_window(problem);
  if ((problem.padded && !selects) || problem.x_is_computed || !problem.x_is_blocked) point.copy_source = 1;
  if (machine.threads > 1) {
    const std::int64_t others = problem.batch * ceil_div(problem.out_blocks(), tile.blocks);
    const std::int64_t threads = machine.threads;
    // Each run of pixels reads all filters: where these are many, one for each thread.
    const bool few_filters = threads_take_lines(problem);
    const bool lines = few_filters || (room.is_line && threads_take_pixels(problem));
    const std::int64_t least = few_filters ? 2 * threads : lines ? threads : 1;
    point.line_tiles = tiles_in_task(tiles, std::max(least, ceil_div(4 * threads, others)));
    point.lines_outer = lines ? 1 : 0;
  }
  if (const std::int64_t copied = room.is_open ? 0 : copied_tiles(problem, machine, tile); copied > 0) {
    point.copy_source = 2;
    point.line_tiles = copied;
    point.lines_outer = 1;
  }
  if (const std::int64_t kept = kept_tiles(problem, room, machine, tile);
      kept > 0 && (machine.threads == 1 || (point.lines_outer != 0 && kept < point.line_tiles))) {
    point.line_tiles = kept;
    point.lines_outer = 1;
  }
  point.stream_ahead = conv_stream_distance(problem);
  point.even_odd = takes_even_odd(problem, machine) ? 1 : 0;
  if (point.copy_source != 2 && pays_to_slice(problem, machine, tile))
    set_slices(problem, room, machine, point);
  return point;
}

/// A kernel of either space, as it was read.
struct TiledConv {
  const Kernel& kernel;
  const Machine& machine;
  ConvProblem problem;
  ImageRoom room;
  bool is_widened;  ///< bytes are multiplied as i16
  ConvNumbers heuristic;

  [[nodiscard]] std::vector<Range<ConvNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const ConvNumbers& point) const;
  [[nodiscard]] double cost(const ConvNumbers& point) const;
  void check_slices(const ConvTiling& tiling) const;
};

std::vector<Range<ConvNumbers>> TiledConv::ranges() const {
  const std::int64_t tiles = tiles_to_divide(problem, conv_tiling(problem, room, heuristic));
  const auto range = ranges_from(heuristic);
  const std::vector<std::int64_t> no_or_yes = {0, 1}, only_no = {0}, only_once = {1};
  const bool unrolls_all = problem.fold_block <= unrolled_channels;
  using N = ConvNumbers;
  return {range("pixels", &N::pixels, up_to(room.pixels, conv_pixel_choices)),
          range("blocks", &N::blocks, conv_block_choices(problem)),
          range("lines", &N::lines, conv_line_choices(room)),
          range("line_tiles", &N::line_tiles, up_to(tiles, {1, 2, 4, 8, tiles})),
          range("lines_outer", &N::lines_outer, no_or_yes),
          range("copy_source", &N::copy_source,
                problem.depthwise || room.is_open ? no_or_yes : std::vector<std::int64_t>{0, 1, 2}),
          range("unroll_channels", &N::unroll_channels,
                unrolls_all || problem.depthwise ? only_once : std::vector<std::int64_t>{1, 2, 4}),
          range("even_odd", &N::even_odd, takes_even_odd(problem, machine) ? no_or_yes : only_no),
          range("stream_ahead", &N::stream_ahead,
                problem.depthwise || problem.packs_weight ? only_no : std::vector<std::int64_t>{0, 1, 2}),
          range("slices", &N::slices, can_slice(problem) && !kernel.open ? no_or_yes : only_no)};
}

/// Splits and orders the output's loops; with threads, every task loop becomes one parallel loop.
void write_conv_output(ScheduleWriter& writer, const std::string& out, const ConvTiling& tiling,
                       const Machine& machine) {
  writer.add("{}.split(d3, b, q, {}, TailStrategy::ShiftInwards);", out, tiling.blocks);
  writer.add("{}.split(d1, t, i, {}, TailStrategy::ShiftInwards);", out, tiling.pixels);
  writer.add("{}.split(d2, l, j, {}, TailStrategy::ShiftInwards);", out, tiling.lines);
  const char* tiles = tiling.is_line ? "t" : "l";
  writer.add("{}.split({}, ll, {}, {}, TailStrategy::GuardWithIf);", out, tiles, tiles, tiling.line_tiles);
  const char* tasks = tiling.lines_outer ? "b, ll" : "ll, b";
  writer.add("{}.reorder(d0, q, i, j, t, l, {}, d4).vectorize(d0).unroll(q).unroll(i).unroll(j);", out,
             tasks);
  if (machine.threads <= 1) return;
  if (tiling.copies_lines)
    writer.add("{}.fuse(ll, d4, task1).parallel(task1);", out);
  else
    writer.add("{}.fuse({}, task1).fuse(task1, d4, task2).parallel(task2);", out, tasks);
}

void unroll_channels_of(ScheduleWriter& writer, const ConvProblem& problem, const std::string& fold,
                        const char* channels, std::int64_t unroll_channels) {
  if (problem.fold_block <= unrolled_channels)
    writer.add("{}.update(0).unroll({});", fold, channels);
  else if (unroll_channels > 1)
    writer.add("{}.update(0).unroll({}, {});", fold, channels, unroll_channels);
}

/// The sums of a task, a block of channels after the other.
void write_channel_slices(ScheduleWriter& writer, const ConvProblem& problem, const std::string& fold,
                          const std::string& out, const ConvTiling& tiling, const Machine& machine,
                          std::int64_t unroll_channels) {
  const char* task = machine.threads > 1 ? "task2" : tiling.lines_outer ? "b" : "ll";
  writer.add("{}.compute_at({}, {}).store_in(MemoryType::Stack).vectorize(d0);", fold, out, task);
  writer.add("{}.update(0).split(d1, t, i, {}, TailStrategy::GuardWithIf);", fold, tiling.pixels);
  writer.add("{}.update(0).split(d2, l, j, {}, TailStrategy::GuardWithIf);", fold, tiling.lines);
  writer.add("{}.update(0).reorder(d0, d3, i, j, r0, r1, r2, t, l, r3, d4);", fold);
  writer.add("{}.update(0).vectorize(d0).unroll(d3).unroll(i).unroll(j);", fold);
  unroll_channels_of(writer, problem, fold, "r0", unroll_channels);
}

void write_conv_fold(ScheduleWriter& writer, const ConvProblem& problem, const std::string& fold,
                     const std::string& out, std::int64_t unroll_channels) {
  writer.add("{}.compute_at({}, t).store_in(MemoryType::Register);", fold, out);
  writer.add("{}.vectorize(d0).unroll(d3).unroll(d1).unroll(d2);", fold);
  if (problem.depthwise) {
    writer.add("{}.update(0).reorder(d0, d1, d2, d3, r0, r1, d4).vectorize(d0).unroll(d1).unroll(d2);", fold);
    if (!has_large_window(problem)) writer.add("{}.update(0).unroll(r0).unroll(r1);", fold);
    return;
  }
  const bool pairs = problem.pair() > 1;
  writer.add("{}.update(0).reorder({}, d4);", fold,
             pairs ? "r0, d0, d3, d1, d2, r1, r2, r3, r4" : "d0, d3, d1, d2, r0, r1, r2, r3");
  if (pairs) writer.add("{}.update(0).atomic().vectorize(r0);", fold);
  writer.add("{}.update(0).vectorize(d0).unroll(d3).unroll(d1).unroll(d2);", fold);
  unroll_channels_of(writer, problem, fold, pairs ? "r1" : "r0", unroll_channels);
}

void TiledConv::check_slices(const ConvTiling& tiling) const {
  if (kernel.open || !can_slice(problem))
    throw UnsupportedError("slices are for blocked f32 images of one group and of known sizes");
  if (const std::int64_t sums = tiling.line_tiles * sums_of_lines(problem, tiling); sums > most_conv_sums)
    throw UnsupportedError("{} sums of slices exceed {}", sums, most_conv_sums);
}

Candidate TiledConv::at(const ConvNumbers& point) const {
  const ConvTiling tiling = conv_tiling(problem, room, point);
  if (!fits_registers(machine, conv_registers(problem, tiling))) {
    throw UnsupportedError("{} x {} pixels of {} blocks do not fit {} vector registers", tiling.lines,
                           tiling.pixels, tiling.blocks, machine.vector_registers);
  }
  if (tiling.copies_lines && room.is_open) throw UnsupportedError("lines of open images are not copied");
  // The last lines would be copied from behind the image.
  if (tiling.copies_lines && ceil_div(problem.out_height, tiling.lines) % tiling.line_tiles != 0)
    throw UnsupportedError("{} tiles of lines are not copied {} at a time",
                           ceil_div(problem.out_height, tiling.lines), tiling.line_tiles);
  const int channel_steps = problem.fold_block / problem.pair();
  if (point.unroll_channels > 1 && channel_steps % point.unroll_channels != 0) {
    throw UnsupportedError("{} steps of channels cannot be unrolled by {}", channel_steps,
                           point.unroll_channels);
  }
  if (point.slices != 0) check_slices(tiling);
  const std::string out = output_stage(kernel, problem.output);
  const std::string& name = kernel.body.value(problem.anchor).name;
  ScheduleWriter writer;
  write_conv_output(writer, out, tiling, machine);
  if (room.is_open) write_few_edges(writer, out, {"t", "l", machine.threads > 1 ? "task2" : "ll"});
  if (point.slices != 0)
    write_channel_slices(writer, problem, name + "_fold", out, tiling, machine, point.unroll_channels);
  else
    write_conv_fold(writer, problem, name + "_fold", out, point.unroll_channels);
  if (kernel.open) {
    writer.add("{}_fold.bound_extent(d1, {}).bound_extent(d2, {}).bound_extent(d3, {}).bound_extent(d4, 1);",
               name, tiling.pixels, tiling.lines, tiling.blocks);
  }
  if (point.even_odd != 0) writer.add("{}.{}();", out, even_odd_lanes_directive);
  if (tiling.copies_lines)
    write_conv_lines(writer, problem, name + "_in", out, machine.threads > 1 ? "task1" : "ll");
  else if (point.copy_source != 0)
    write_conv_source(writer, problem, name + "_in", machine);
  if (problem.packs_weight) write_conv_filter(writer, kernel, problem, name + "_filter", machine);
  if (point.stream_ahead > 0 && point.slices == 0) {
    const bool repeats_lines = machine.threads == 1 && !tiling.lines_outer;
    write_stream(writer, kernel, problem.weight, out, repeats_lines ? "ll" : "l", point.stream_ahead);
  }
  Form form{problem.depthwise ? "depthwise_blocked" : "conv_blocked", {}};
  if (is_widened) form.parameters["widen"] = 1;
  return {std::move(form), writer.take()};
}

double TiledConv::cost(const ConvNumbers& point) const {
  const ConvTiling tiling = conv_tiling(problem, room, point);
  double cycles = conv_cycles(problem, room, machine, tiling);
  const bool copies = point.copy_source != 0;
  if (!copies && problem.padded) cycles *= problem.depthwise ? 1.4 : 2.0;
  if (!copies && !problem.x_is_blocked) cycles *= 1.5;
  constexpr double bytes_per_cycle = 8, task_cycles = 600;
  const auto element_bytes = static_cast<double>(dtype_size(problem.element));
  const double source_bytes =
      element_bytes * static_cast<double>(problem.batch * problem.channels * problem.height * problem.width);
  if (copies) cycles += source_bytes * (problem.x_is_blocked ? 2.0 : 6.0) / bytes_per_cycle;
  // The filter of a task is read again by every tile of it; beyond the L2 that costs.
  if (static_cast<double>(filter_bytes(problem, tiling.blocks)) >
      0.75 * static_cast<double>(machine.l2_bytes))
    cycles *= 1.1;
  if (pays_to_slice(problem, machine, tiling) != (point.slices != 0)) cycles *= point.slices != 0 ? 1.1 : 4.0;
  const double tasks = conv_tasks(problem, tiling);
  return seconds_per_cycle / machine.threads *
         (cycles * imbalance(tasks, machine.threads) + task_cycles * tasks);
}

Binding bind_tiled_conv(const Kernel& kernel, const Machine& machine, bool depthwise) {
  const Reading<ConvProblem> reading = read_conv(kernel, depthwise);
  if (!reading.refusal.empty()) return {reading.refusal};
  ConvProblem problem = reading.problem;
  const bool is_widened = widens_bytes(problem.element, machine);
  if (is_widened) problem.widen_bytes();
  if (std::string refusal = product_refusal(machine, problem.element); !depthwise && !refusal.empty())
    return {refusal};
  const ImageRoom room = room_of(kernel, problem);
  if (kernel.open && pays_to_slice(problem, machine, best_conv_tile(problem, room, machine)))
    return {"the sums of its slices want memory of a known size, and its sizes are open"};
  return bind_space(
      TiledConv{kernel, machine, problem, room, is_widened, first_conv_point(problem, room, machine)});
}

Binding bind_dense(const Kernel& kernel, const Machine& machine) {
  return bind_tiled_conv(kernel, machine, false);
}
Binding bind_depthwise(const Kernel& kernel, const Machine& machine) {
  return bind_tiled_conv(kernel, machine, true);
}

}  // namespace

const Space conv_blocked_space = {"conv_blocked", bind_dense, {}, Space::Open::all};
const Space depthwise_blocked_space = {"depthwise_blocked", bind_depthwise, {}, Space::Open::all};

}  // namespace sylvite
