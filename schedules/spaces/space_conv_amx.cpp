#include <algorithm>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/problems.h"
#include "lowering/plan/fusion_rules.h"
#include "schedules/bind_space.h"
#include "schedules/directives/amx_tiles.h"
#include "schedules/directives/overlap_epilogue.h"
#include "schedules/directives/unroll_steps.h"
#include "schedules/spaces/conv_source.h"
#include "schedules/spaces/register_tile.h"
#include "schedules/spaces/spaces.h"

// Spaces conv_amx and conv_lines_amx: bf16 convolutions through AMX, over outputs stored as (channel in
// block, x, y, block, batch) = d0..d4. A row of a tile is a pixel of the output, its columns are 16 channels.
// The loops, innermost first:
//   d0      the channels of a block, or, with half=1, 16 of them
//   i, j    `pixels` pixels of `lines` lines: as many rows, and tiles of rows
//   q       `blocks` blocks
//   t, l    the tiles of a line; `line_tiles` tiles of lines
//   h       with half=1, the halves of a block
//   ll, b   the tasks, `lines_outer` says which is outer; then the batch, or the batch between them where
//           filters pass by but all images stay in the L2
// The source is read as it lies (copy_source=0), or copied with its border: at once (1), or by each task of
// lines those that it needs (2), which stay in its core's cache; lines are outer then. With flat=1
// (conv_tiles{flat=1}) i, j are the whole plane, cut into tiles as lines lie one behind the other. Tails are
// shifted inwards: some elements are computed twice, so the output must alias no input. With pairs=1 the
// epilogue takes two pixels at once.

namespace sylvite {
namespace {

struct AmxConvNumbers {
  std::int64_t pixels = 1;
  std::int64_t lines = 1;
  std::int64_t blocks = 1;
  std::int64_t half = 0;
  std::int64_t flat = 0;
  std::int64_t line_tiles = 1;
  std::int64_t lines_outer = 0;
  std::int64_t copy_source = 0;
  std::int64_t stream_ahead = 0;
  std::int64_t overlap = 0;
  std::int64_t unroll_steps = 1;
  std::int64_t pairs = 0;
};

/// The convolution as conv_lines reads it, of an image with few channels, or else as conv_tiles does.
struct AmxConvProblem : ConvProblem {
  bool by_lines = false;
};

/// What is multiplied at once, in tile registers; clamped to the problem's extents.
struct AmxConvBlock {
  std::int64_t pixels = 1;  ///< rows of a tile
  std::int64_t tiles = 1;   ///< of the whole plane, if flat
  std::int64_t lines = 1;
  std::int64_t blocks = 1;
  bool half = false;
  bool flat = false;

  [[nodiscard]] std::int64_t row_tiles() const { return tiles * lines; }
};

/// A block and the loops around it.
struct AmxConvTiling {
  AmxConvBlock block;
  std::int64_t line_tiles = 1;
  bool lines_outer = false;
  bool copies_lines = false;   ///< not flat; lines_outer then
  bool pairs = false;          ///< of pixels in the epilogue; neither flat nor half
  bool images_inside = false;  ///< of the tasks' loops: the batch, around all of a block's lines
};

/// Rows of a plane whose lines lie one behind the other.
std::int64_t flat_rows(const ConvProblem& p) {
  return (p.out_height - 1) * flat_pitch(p) + p.out_width;
}
/// Of the source's copy: with strides, flat planes are one for every place of the window.
double copied_bytes(const ConvProblem& p, bool flat) {
  const std::int64_t pixels =
      flat && p.has_strides() ? p.kernel_x * p.kernel_y * p.out_width * p.out_height : p.width * p.height;
  return 2 * static_cast<double>(p.batch * p.channels * pixels);
}
std::int64_t column_tiles(const ConvProblem& p, const AmxConvBlock& block) {
  return block.blocks * (block.half ? 1 : p.block / amx_tile_columns);
}

bool fits_tiles(const ConvProblem& p, const AmxConvBlock& block) {
  return block.pixels <= amx_tile_rows &&
         amx_registers(static_cast<int>(block.row_tiles()), static_cast<int>(column_tiles(p, block))) <=
             amx_register_count;
}

/// The whole plane, in as few tiles as can be.
AmxConvBlock flat_block(const ConvProblem& p, bool half, std::int64_t blocks) {
  const std::int64_t tiles = ceil_div(flat_rows(p), amx_tile_rows);
  return {
      .pixels = ceil_div(flat_rows(p), tiles), .tiles = tiles, .blocks = blocks, .half = half, .flat = true};
}

AmxConvTiling amx_conv_tiling(const ConvProblem& p, const AmxConvNumbers& point) {
  const bool half = point.half != 0;
  const std::int64_t blocks = std::min(point.blocks, p.out_blocks());
  if (point.flat != 0) return {.block = flat_block(p, half, blocks), .lines_outer = point.lines_outer != 0};
  const AmxConvBlock block{.pixels = std::min(point.pixels, p.out_width),
                           .lines = std::min(point.lines, p.out_height),
                           .blocks = blocks,
                           .half = half};
  const bool copies_lines = point.copy_source == 2;
  return {.block = block,
          .line_tiles = std::min(point.line_tiles, ceil_div(p.out_height, block.lines)),
          .lines_outer = point.lines_outer != 0 || copies_lines,
          .copies_lines = copies_lines,
          .pairs = point.pairs != 0 && !half && block.pixels % 2 == 0};
}

double amx_conv_tasks(const ConvProblem& p, const AmxConvTiling& tiling) {
  const AmxConvBlock& block = tiling.block;
  const std::int64_t lines =
      block.flat ? 1 : ceil_div(ceil_div(p.out_height, block.lines), tiling.line_tiles);
  return static_cast<double>(p.batch * lines *
                             (tiling.copies_lines ? 1 : ceil_div(p.out_blocks(), block.blocks)));
}

/// Products of tiles that one block's fold takes.
double steps_of(const AmxConvProblem& p) {
  const std::int64_t line =
      p.by_lines ? ceil_div(p.kernel_x * p.fold_block, amx_tile_depth) : p.kernel_x * p.fold_blocks();
  return static_cast<double>(p.kernel_y * line);
}

double block_count(const ConvProblem& p, const AmxConvBlock& block) {
  const std::int64_t rows =
      block.flat ? 1 : ceil_div(p.out_width, block.pixels) * ceil_div(p.out_height, block.lines);
  const std::int64_t halves = block.half ? p.block / amx_tile_columns : 1;
  return static_cast<double>(p.batch * rows * halves * ceil_div(p.out_blocks(), block.blocks));
}

/// A step takes a cycle for each row of its products, or as long as its operands take from the caches, or as
/// long as a product waits for the one before.
double tile_cycles(const AmxConvProblem& p, const Machine& machine, const AmxConvBlock& block) {
  constexpr double latency = 36;  // and a cycle a row
  constexpr double row_load = 0.6;
  constexpr double far_load = 24;  // a tile of weights from the L2
  constexpr double middle_load = 21;
  constexpr double near_load = 9;
  const auto rows = static_cast<double>(block.pixels);
  const auto row_tiles = static_cast<double>(block.row_tiles());
  const auto columns = static_cast<double>(column_tiles(p, block));
  const double weight_bytes = 1024 * columns * steps_of(p);
  const auto l1_bytes = static_cast<double>(machine.l1_bytes);
  const double load = weight_bytes > 2.0 * l1_bytes   ? far_load
                      : weight_bytes > 0.5 * l1_bytes ? middle_load
                                                      : near_load;
  const double step =
      std::max({rows * row_tiles * columns, load * columns + row_load * rows * row_tiles, latency + rows});
  const double epilogue = 5 * rows * row_tiles * columns + 60;
  return block_count(p, block) * (step * steps_of(p) + epilogue);
}

const std::vector<std::int64_t> amx_conv_lines = {1, 2, 4, 3};
const std::vector<std::int64_t> amx_conv_pixels = {16, 14, 8, 7, 12, 10, 15, 13, 11, 9, 6, 5, 4, 3, 2, 1};

bool can_be_flat(const ConvProblem& p) {
  return fits_tiles(p, flat_block(p, true, 1));
}

/// What the model does not see. Blocks of six tiles leave two registers for what is multiplied, so that loads
/// wait for products: measured 3 % more than blocks of four, and half as much again where another program
/// uses the core's tiles. Four columns load more weights for a row than two: 10 % to 40 % more.
double crowding(const ConvProblem& p, const AmxConvBlock& block) {
  const std::int64_t columns = column_tiles(p, block);
  return block.row_tiles() * columns > 4 || columns > 2 ? 1.15 : 1;
}

/// The block of tiles that the model likes best.
AmxConvBlock best_block(const AmxConvProblem& p, const Machine& machine) {
  AmxConvBlock best;
  double best_cycles = std::numeric_limits<double>::max();
  const auto consider = [&](const AmxConvBlock& block, double penalty) {
    if (!fits_tiles(p, block)) return;
    const double cycles = penalty * crowding(p, block) * tile_cycles(p, machine, block);
    if (cycles < best_cycles) std::tie(best, best_cycles) = std::tuple(block, cycles);
  };
  for (const std::int64_t pixels : up_to(p.out_width, amx_conv_pixels)) {
    for (const std::int64_t lines : up_to(p.out_height, amx_conv_lines)) {
      for (const std::int64_t blocks : up_to(p.out_blocks(), {1, 2}))
        consider({.pixels = pixels, .lines = lines, .blocks = blocks}, 1);
      consider({.pixels = pixels, .lines = lines, .half = true}, 1.05);
    }
  }
  if (p.by_lines || !can_be_flat(p)) return best;
  const AmxConvBlock flat = flat_block(p, true, 1);
  constexpr double copied_per_cycle = 4;
  const double planes = p.has_strides() ? copied_bytes(p, true) / copied_per_cycle : 0;
  return 1.05 * tile_cycles(p, machine, flat) + planes < best_cycles ? flat : best;
}

/// Whether all filters stay in the L2 while a task passes by them.
bool keeps_filters(const ConvProblem& p, const Machine& machine) {
  return filter_bytes(p, p.out_blocks()) <= machine.l2_bytes * 5 / 8;
}

/// Tiles of lines in a task that copies its source: that should stay in the L2 beside the filters, which pass
/// by once a task. 0 where filters alone are too large, or the whole source is small enough; with threads
/// that is less, since half of a copy made before would come from another core.
std::int64_t copied_line_tiles(const ConvProblem& p, const Machine& machine, std::int64_t lines) {
  const std::int64_t room = machine.l2_bytes / 4;
  const std::int64_t line_bytes = 2 * (p.width + p.kernel_x) * p.fold_blocks() * p.fold_block;
  const std::int64_t small = machine.threads > 1 ? machine.l2_bytes / 12 : room;
  if (!keeps_filters(p, machine) || line_bytes * p.height <= small) return 0;
  const std::int64_t most = (room - line_bytes * p.kernel_y) / (line_bytes * p.stride_y * lines);
  if (most < 2) return 0;
  const std::int64_t tiles = ceil_div(p.out_height, lines);
  const std::int64_t least_tasks = machine.threads > 1 ? 2 * machine.threads : 1;
  return ceil_div(tiles, std::max(ceil_div(tiles, most), least_tasks));
}

bool needs_copy(const AmxConvProblem& p) {
  return p.by_lines || p.padded || p.x_is_computed || !p.x_is_blocked;
}

/// Of a step in straight code: a window of 3 x 3 over eight blocks of channels.
constexpr std::int64_t most_copies = 72;

/// Filters of the next blocks are fetched while these are multiplied.
std::int64_t amx_conv_stream_distance(const ConvProblem& p) {
  constexpr std::int64_t least_bytes = 64 << 10;
  return filter_bytes(p, p.out_blocks()) < least_bytes ? 0 : 1;
}

/// Chains of instructions longer than what the scheduler sees at once: two pixels, one beside the other, keep
/// the units busy.
bool has_long_epilogue(const Kernel& kernel) {
  return std::ranges::any_of(kernel.body.nodes(), [&](const Node& node) {
    return role_of(node) == Role::pointwise && cost_of(kernel.body, node) == Prologue::any;
  });
}

AmxConvNumbers first_amx_conv_point(const Kernel& kernel, const AmxConvProblem& p, const Machine& machine) {
  const AmxConvBlock block = best_block(p, machine);
  AmxConvNumbers point{.pixels = block.pixels,
                       .lines = block.lines,
                       .blocks = block.blocks,
                       .half = block.half ? 1 : 0,
                       .flat = block.flat ? 1 : 0,
                       .line_tiles = ceil_div(p.out_height, block.lines),
                       .copy_source = needs_copy(p) ? 1 : 0,
                       .stream_ahead = p.by_lines ? 0 : amx_conv_stream_distance(p),
                       .pairs = has_long_epilogue(kernel) ? 1 : 0};
  while (amx_conv_tasks(p, amx_conv_tiling(p, point)) < 4.0 * machine.threads && point.line_tiles > 1)
    point.line_tiles = ceil_div(point.line_tiles, 2);
  const std::int64_t tiles = block.flat ? 0 : copied_line_tiles(p, machine, block.lines);
  if (point.copy_source != 0 && tiles > 0) {
    point.copy_source = 2;
    point.line_tiles = tiles;
  }
  // A thread goes on with its lines, which it has copied or which are near, through all filters.
  if (machine.threads > 1 && keeps_filters(p, machine)) point.lines_outer = 1;
  // One step leaves nothing to run beside, with many the epilogue hardly counts.
  constexpr double most_steps = 100;
  constexpr double most_unrolled = 36;  // longer folds gain nothing by it
  const double steps = steps_of(p);
  point.overlap = steps > 1 && steps <= most_steps ? 1 : 0;
  point.unroll_steps = steps <= most_unrolled ? most_copies : 1;
  return point;
}

/// A kernel of either space, as it was read.
struct AmxConv {
  const Kernel& kernel;
  const Machine& machine;
  AmxConvProblem p;
  AmxConvNumbers heuristic;

  [[nodiscard]] std::vector<Range<AmxConvNumbers>> ranges() const;
  [[nodiscard]] Candidate at(const AmxConvNumbers& point) const;
  [[nodiscard]] double cost(const AmxConvNumbers& point) const;
};

std::vector<Range<AmxConvNumbers>> AmxConv::ranges() const {
  const auto range = ranges_from(heuristic);
  const std::vector<std::int64_t> no_or_yes = {0, 1}, only_no = {0}, up_to_two = {0, 1, 2};
  const std::int64_t tiles = ceil_div(p.out_height, heuristic.lines);
  using N = AmxConvNumbers;
  return {range("pixels", &N::pixels, up_to(p.out_width, amx_conv_pixels)),
          range("lines", &N::lines, up_to(p.out_height, amx_conv_lines)),
          range("blocks", &N::blocks, up_to(p.out_blocks(), {1, 2})),
          range("half", &N::half, no_or_yes),
          range("flat", &N::flat, !p.by_lines && can_be_flat(p) ? no_or_yes : only_no),
          range("line_tiles", &N::line_tiles, up_to(tiles, {1, 2, 4, 8, tiles})),
          range("lines_outer", &N::lines_outer, no_or_yes),
          range("copy_source", &N::copy_source, needs_copy(p) ? std::vector<std::int64_t>{1, 2} : up_to_two),
          range("stream_ahead", &N::stream_ahead, p.by_lines ? only_no : up_to_two),
          range("overlap", &N::overlap, no_or_yes),
          range("unroll_steps", &N::unroll_steps, {most_copies, 9, 1}),
          range("pairs", &N::pairs, no_or_yes)};
}

/// A block's filters meet all images before the next ones come, where filters pass by but images stay.
bool takes_images_inside(const ConvProblem& p, const Machine& machine, const AmxConvTiling& tiling) {
  return p.batch > 1 && !tiling.lines_outer && !keeps_filters(p, machine) &&
         copied_bytes(p, tiling.block.flat) <= 0.75 * static_cast<double>(machine.l2_bytes);
}

void write_amx_conv_output(ScheduleWriter& writer, const std::string& out, const AmxConvTiling& tiling,
                           const Machine& machine) {
  const AmxConvBlock& block = tiling.block;
  std::string channels = "d0";
  writer.add("{}.split(d3, b, q, {}, TailStrategy::ShiftInwards);", out, block.blocks);
  if (block.half) {
    writer.add("{}.split(d0, h, c, {}, TailStrategy::RoundUp);", out, amx_tile_columns);
    channels = "c";
  }
  const std::string halves = block.half ? "h, " : "";
  if (block.flat) {
    const char* tasks = tiling.images_inside ? "d4, b" : "b, d4";
    writer.add("{}.reorder({}, d1, d2, q, {}{}).vectorize({});", out, channels, halves, tasks, channels);
    if (machine.threads > 1) writer.add("{}.fuse({}, task1).parallel(task1);", out, tasks);
    return;
  }
  writer.add("{}.split(d1, t, i, {}, TailStrategy::ShiftInwards);", out, block.pixels);
  writer.add("{}.split(d2, l, j, {}, TailStrategy::ShiftInwards);", out, block.lines);
  writer.add("{}.split(l, ll, l, {}, TailStrategy::GuardWithIf);", out, tiling.line_tiles);
  const char* tasks = tiling.lines_outer ? "b, ll" : tiling.images_inside ? "ll, d4" : "ll, b";
  const char* outermost = tiling.images_inside ? "b" : "d4";
  if (tiling.pairs) {
    writer.add("{}.split(i, i, u, 2, TailStrategy::RoundUp).vectorize(u);", out);
    channels += ", u";
  }
  writer.add("{}.reorder({}, i, j, q, t, l, {}{}, {}).vectorize({});", out, channels, halves, tasks,
             outermost, block.half ? "c" : "d0");
  if (tiling.copies_lines && machine.threads > 1)
    writer.add("{}.fuse(ll, d4, task1).parallel(task1);", out);
  else if (machine.threads > 1)
    writer.add("{}.fuse({}, task1).fuse(task1, {}, task2).parallel(task2);", out, tasks, outermost);
}

void write_amx_conv_fold(ScheduleWriter& writer, const AmxConvProblem& p, const std::string& fold,
                         const std::string& out, const AmxConvTiling& tiling, const Machine& machine,
                         const AmxConvNumbers& point) {
  const AmxConvBlock& block = tiling.block;
  const std::int64_t channels = block.half ? amx_tile_columns : p.block;
  // Of write_output, where loops are joined.
  const char* blocks = machine.threads > 1 ? "task1" : tiling.images_inside ? "d4" : "b";
  const char* at = block.flat ? (block.half ? "h" : blocks) : "t";
  writer.add("{}.compute_at({}, {}).store_in(MemoryType::Stack);", fold, out, at);
  const char* rows = block.flat ? "f" : "d1";
  writer.add("{}.bound_extent(d0, {}).bound_extent({}, {});", fold, channels, rows,
             block.pixels * block.tiles);
  writer.add("{}.vectorize(d0, {});", fold, amx_tile_columns);
  const std::string window = p.by_lines ? "r2, r3" : "r2, r3, r4";
  writer.add("{}.update(0).split(d0, c, v, {}, TailStrategy::RoundUp);", fold, amx_tile_columns);
  if (block.flat) writer.add("{}.update(0).split(f, s, i, {}, TailStrategy::RoundUp);", fold, block.pixels);
  writer.add("{}.update(0).reorder(r0, r1, v, {}, {}, c, {}, d3, d4);", fold, block.flat ? "i" : "d1", window,
             block.flat ? "s" : "d2");
  writer.add("{}.update(0).{}();", fold, amx_tiles_directive);
  if (point.overlap != 0) writer.add("{}.{}();", fold, overlap_epilogue_directive);
  if (point.unroll_steps > 1) writer.add("{}.{}({});", fold, unroll_steps_directive, point.unroll_steps);
}

void write_source(ScheduleWriter& writer, const AmxConvProblem& p, const std::string& name,
                  const std::string& out, const AmxConvTiling& tiling, const Machine& machine) {
  const bool parallel = machine.threads > 1 && !tiling.copies_lines;
  const std::string source = name + (tiling.block.flat ? "_flat" : "_in");
  const std::string place = tiling.copies_lines
                                ? fmt::format("compute_at({}, {})", out, machine.threads > 1 ? "task1" : "ll")
                                : "compute_root()";
  if (p.by_lines) {
    // Lines of a channel are read in vectors, and stored with the other channels between.
    writer.add("{}.{}.split(e, x, c, {}, TailStrategy::RoundUp);", source, place, p.fold_block);
    writer.add("{}.reorder(c, x, y, d4).unroll(c).vectorize(x, {}, TailStrategy::RoundUp);", source,
               machine.vector_floats);
    if (parallel) writer.add("{}.parallel(y);", source);
    return;
  }
  if (!tiling.block.flat && !tiling.copies_lines) return write_conv_source(writer, p, source, machine);
  writer.add("{}.{};", source, place);
  if (p.x_is_blocked || tiling.block.flat)
    writer.add("{}.vectorize(d0);", source);
  else
    writer.add("{}.reorder(d0, d1, d2, d3, d4).unroll(d0);", source);
  if (parallel) writer.add("{}.parallel(d3);", source);
}

Candidate AmxConv::at(const AmxConvNumbers& point) const {
  AmxConvTiling tiling = amx_conv_tiling(p, point);
  const AmxConvBlock& block = tiling.block;
  tiling.images_inside = takes_images_inside(p, machine, tiling);
  if (!fits_tiles(p, block)) {
    throw UnsupportedError("{} x {} tiles do not fit {} tile registers", block.row_tiles(),
                           column_tiles(p, block), amx_register_count);
  }
  const std::string out = output_stage(kernel, p.output);
  const std::string& name = kernel.body.value(p.anchor).name;
  ScheduleWriter writer;
  write_amx_conv_output(writer, out, tiling, machine);
  write_amx_conv_fold(writer, p, name + "_fold", out, tiling, machine, point);
  if (block.flat || point.copy_source != 0) write_source(writer, p, name, out, tiling, machine);
  if (point.stream_ahead > 0) {
    const bool repeats_lines = machine.threads == 1 && !tiling.lines_outer;
    const char* lines = tiling.images_inside ? "d4" : "ll";
    const char* loop = block.flat ? (block.half ? "h" : "d1") : repeats_lines ? lines : "l";
    write_stream(writer, kernel, p.weight, out, loop, point.stream_ahead);
  }
  if (p.by_lines) return {Form{"conv_lines", {}}, writer.take()};
  return {Form{"conv_tiles", {{"flat", block.flat ? 1 : 0}}}, writer.take()};
}

double AmxConv::cost(const AmxConvNumbers& point) const {
  const AmxConvTiling tiling = amx_conv_tiling(p, point);
  double cycles = tile_cycles(p, machine, tiling.block);
  constexpr double bytes_per_cycle = 8;
  if (tiling.block.flat || point.copy_source != 0)
    cycles += copied_bytes(p, tiling.block.flat) * (p.x_is_blocked ? 2.0 : 6.0) / bytes_per_cycle;
  const double tasks = amx_conv_tasks(p, tiling);
  constexpr double task_cycles = 600;
  return seconds_per_cycle / machine.threads *
         (cycles * imbalance(tasks, machine.threads) + task_cycles * tasks);
}

Binding bind_read(const Kernel& kernel, const Machine& machine, const Reading<ConvProblem>& reading,
                  bool by_lines) {
  if (!reading.refusal.empty()) return {reading.refusal};
  if (!machine.amx) return {"the processor has no AMX, or the system does not let programs use it"};
  const AmxConvProblem problem{reading.problem, by_lines};
  return bind_space(AmxConv{kernel, machine, problem, first_amx_conv_point(kernel, problem, machine)});
}

Binding bind_tiles(const Kernel& kernel, const Machine& machine) {
  return bind_read(kernel, machine, read_conv_tiles(kernel), false);
}
Binding bind_lines(const Kernel& kernel, const Machine& machine) {
  return bind_read(kernel, machine, read_conv_lines(kernel), true);
}

}  // namespace

const Space conv_amx_space = {"conv_amx", bind_tiles};
const Space conv_lines_amx_space = {"conv_lines_amx", bind_lines};

}  // namespace sylvite
