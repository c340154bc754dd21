#include "schedules/spaces/space_conv_amx.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "lowering/algorithms/conv_tiles.h"
#include "lowering/plan/fusion_rules.h"
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

/// A point's numbers, clamped to the problem's extents.
struct Tiling {
  std::int64_t pixels = 1;  ///< rows of a tile
  std::int64_t tiles = 1;   ///< of the whole plane, if flat
  std::int64_t lines = 1;
  std::int64_t blocks = 1;
  std::int64_t line_tiles = 1;
  bool half = false;
  bool flat = false;
  bool lines_outer = false;
  bool copies_lines = false;  ///< not flat; lines_outer then
  bool pairs = false;         ///< of pixels in the epilogue; neither flat nor half

  bool images_inside = false;  ///< of the tasks' loops: the batch, around all of a block's lines

  [[nodiscard]] std::int64_t row_tiles() const { return tiles * lines; }
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
std::int64_t column_tiles(const ConvProblem& p, const Tiling& tiling) {
  return tiling.blocks * (tiling.half ? 1 : p.block / amx_tile_columns);
}

bool fits_tiles(const ConvProblem& p, const Tiling& tiling) {
  return tiling.pixels <= amx_tile_rows &&
         amx_registers(static_cast<int>(tiling.row_tiles()), static_cast<int>(column_tiles(p, tiling))) <=
             amx_register_count;
}

Tiling tiling_of(const ConvProblem& p, const Point& point) {
  Tiling tiling;
  tiling.flat = get(point, "flat") != 0;
  tiling.half = get(point, "half") != 0;
  tiling.blocks = std::min(get(point, "blocks"), p.out_blocks());
  tiling.lines_outer = get(point, "lines_outer") != 0;
  if (tiling.flat) {
    tiling.tiles = ceil_div(flat_rows(p), amx_tile_rows);
    tiling.pixels = ceil_div(flat_rows(p), tiling.tiles);
    return tiling;
  }
  tiling.pixels = std::min(get(point, "pixels"), p.out_width);
  tiling.lines = std::min(get(point, "lines"), p.out_height);
  tiling.line_tiles = std::min(get(point, "line_tiles"), ceil_div(p.out_height, tiling.lines));
  tiling.copies_lines = get(point, "copy_source") == 2;
  tiling.pairs = get(point, "pairs") != 0 && !tiling.half && tiling.pixels % 2 == 0;
  tiling.lines_outer = tiling.lines_outer || tiling.copies_lines;
  return tiling;
}

double task_count(const ConvProblem& p, const Tiling& tiling) {
  const std::int64_t lines =
      tiling.flat ? 1 : ceil_div(ceil_div(p.out_height, tiling.lines), tiling.line_tiles);
  return static_cast<double>(p.batch * lines *
                             (tiling.copies_lines ? 1 : ceil_div(p.out_blocks(), tiling.blocks)));
}

/// Products of tiles that one block's fold takes.
double steps_of(const ConvProblem& p, bool by_lines) {
  const std::int64_t line =
      by_lines ? ceil_div(p.kernel_x * p.fold_block, amx_tile_depth) : p.kernel_x * p.fold_blocks();
  return static_cast<double>(p.kernel_y * line);
}

double block_count(const ConvProblem& p, const Tiling& tiling) {
  const std::int64_t rows =
      tiling.flat ? 1 : ceil_div(p.out_width, tiling.pixels) * ceil_div(p.out_height, tiling.lines);
  const std::int64_t halves = tiling.half ? p.block / amx_tile_columns : 1;
  return static_cast<double>(p.batch * rows * halves * ceil_div(p.out_blocks(), tiling.blocks));
}

/// A step takes a cycle for each row of its products, or as long as its operands take from the caches, or as
/// long as a product waits for the one before.
double tile_cycles(const ConvProblem& p, const Machine& machine, const Tiling& tiling, bool by_lines) {
  constexpr double latency = 36;  // and a cycle a row
  constexpr double row_load = 0.6;
  constexpr double far_load = 24;  // a tile of weights from the L2
  constexpr double middle_load = 21;
  constexpr double near_load = 9;
  const auto rows = static_cast<double>(tiling.pixels);
  const auto row_tiles = static_cast<double>(tiling.row_tiles());
  const auto columns = static_cast<double>(column_tiles(p, tiling));
  const double weight_bytes = 1024 * columns * steps_of(p, by_lines);
  const auto l1_bytes = static_cast<double>(machine.l1_bytes);
  const double load = weight_bytes > 2.0 * l1_bytes   ? far_load
                      : weight_bytes > 0.5 * l1_bytes ? middle_load
                                                      : near_load;
  const double step =
      std::max({rows * row_tiles * columns, load * columns + row_load * rows * row_tiles, latency + rows});
  const double epilogue = 5 * rows * row_tiles * columns + 60;
  return block_count(p, tiling) * (step * steps_of(p, by_lines) + epilogue);
}

const std::vector<std::int64_t> line_choices = {1, 2, 4, 3};
const std::vector<std::int64_t> pixel_choices = {16, 14, 8, 7, 12, 10, 15, 13, 11, 9, 6, 5, 4, 3, 2, 1};

bool can_be_flat(const ConvProblem& p) {
  Tiling tiling;
  tiling.tiles = ceil_div(flat_rows(p), amx_tile_rows);
  tiling.half = true;
  return fits_tiles(p, tiling);
}

/// What the model does not see. Blocks of six tiles leave two registers for what is multiplied, so that loads
/// wait for products: measured 3 % more than blocks of four, and half as much again where another program
/// uses the core's tiles. Four columns load more weights for a row than two: 10 % to 40 % more.
double crowding(const ConvProblem& p, const Tiling& tiling) {
  const std::int64_t columns = column_tiles(p, tiling);
  return tiling.row_tiles() * columns > 4 || columns > 2 ? 1.15 : 1;
}

/// The block of tiles that the model likes best.
Tiling best_tile(const ConvProblem& p, const Machine& machine, bool by_lines) {
  Tiling best;
  double best_cycles = std::numeric_limits<double>::max();
  const auto consider = [&](const Tiling& tiling, double penalty) {
    if (!fits_tiles(p, tiling)) return;
    const double cycles = penalty * crowding(p, tiling) * tile_cycles(p, machine, tiling, by_lines);
    if (cycles < best_cycles) std::tie(best, best_cycles) = std::tuple(tiling, cycles);
  };
  for (const std::int64_t pixels : up_to(p.out_width, pixel_choices)) {
    for (const std::int64_t lines : up_to(p.out_height, line_choices)) {
      for (const std::int64_t blocks : up_to(p.out_blocks(), {1, 2}))
        consider({pixels, 1, lines, blocks, 1, false, false, false}, 1);
      consider({pixels, 1, lines, 1, 1, true, false, false}, 1.05);
    }
  }
  if (by_lines || !can_be_flat(p)) return best;
  Tiling flat;
  flat.flat = flat.half = true;
  flat.tiles = ceil_div(flat_rows(p), amx_tile_rows);
  flat.pixels = ceil_div(flat_rows(p), flat.tiles);
  constexpr double copied_per_cycle = 4;
  const double planes = p.has_strides() ? copied_bytes(p, true) / copied_per_cycle : 0;
  return 1.05 * tile_cycles(p, machine, flat, by_lines) + planes < best_cycles ? flat : best;
}

/// Bytes of all filters, their blocks whole.
std::int64_t filter_bytes(const ConvProblem& p) {
  return 2 * p.kernel_x * p.kernel_y * p.fold_blocks() * p.fold_block * p.out_blocks() * p.block;
}

/// Whether all filters stay in the L2 while a task passes by them.
bool keeps_filters(const ConvProblem& p, const Machine& machine) {
  return filter_bytes(p) <= machine.l2_bytes * 5 / 8;
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

bool needs_copy(const ConvProblem& p, bool by_lines) {
  return by_lines || p.padded || p.x_is_computed || !p.x_is_blocked;
}

/// Of a step in straight code: a window of 3 x 3 over eight blocks of channels.
constexpr std::int64_t most_copies = 72;

/// Filters of the next blocks are fetched while these are multiplied.
std::int64_t stream_distance(const ConvProblem& p) {
  constexpr std::int64_t least_bytes = 64 << 10;
  return filter_bytes(p) < least_bytes ? 0 : 1;
}

/// Chains of instructions longer than what the scheduler sees at once: two pixels, one beside the other, keep
/// the units busy.
bool has_long_epilogue(const Kernel& kernel) {
  return std::ranges::any_of(kernel.body.nodes(), [&](const Node& node) {
    return role_of(node) == Role::pointwise && cost_of(kernel.body, node) == Prologue::any;
  });
}

Point heuristic_point(const Kernel& kernel, const ConvProblem& p, const Machine& machine, bool by_lines) {
  const Tiling tile = best_tile(p, machine, by_lines);
  Point point = {{"pixels", tile.pixels},
                 {"lines", tile.lines},
                 {"blocks", tile.blocks},
                 {"half", tile.half ? 1 : 0},
                 {"flat", tile.flat ? 1 : 0},
                 {"line_tiles", ceil_div(p.out_height, tile.lines)},
                 {"lines_outer", 0},
                 {"copy_source", needs_copy(p, by_lines) ? 1 : 0},
                 {"pairs", has_long_epilogue(kernel) ? 1 : 0}};
  while (task_count(p, tiling_of(p, point)) < 4.0 * machine.threads && point["line_tiles"] > 1)
    point["line_tiles"] = ceil_div(point["line_tiles"], 2);
  const std::int64_t tiles = tile.flat ? 0 : copied_line_tiles(p, machine, tile.lines);
  if (point["copy_source"] != 0 && tiles > 0) {
    point["copy_source"] = 2;
    point["line_tiles"] = tiles;
  }
  // A thread goes on with its lines, which it has copied or which are near, through all filters.
  if (machine.threads > 1 && keeps_filters(p, machine)) point["lines_outer"] = 1;
  point["stream_ahead"] = by_lines ? 0 : stream_distance(p);
  // One step leaves nothing to run beside, with many the epilogue hardly counts.
  constexpr double most_steps = 100;
  constexpr double most_unrolled = 36;  // longer folds gain nothing by it
  const double steps = steps_of(p, by_lines);
  point["overlap"] = steps > 1 && steps <= most_steps ? 1 : 0;
  point["unroll_steps"] = steps <= most_unrolled ? most_copies : 1;
  return point;
}

std::vector<Parameter> parameters_of(const Kernel& kernel, const ConvProblem& p, const Machine& machine,
                                     bool by_lines) {
  const Point first = heuristic_point(kernel, p, machine, by_lines);
  const auto values = [&](const std::string& name, const std::vector<std::int64_t>& choices) {
    return Parameter{name, starting_with(first.at(name), choices)};
  };
  const std::vector<std::int64_t> no_or_yes = {0, 1};
  const std::int64_t tiles = ceil_div(p.out_height, first.at("lines"));
  const bool must_copy = needs_copy(p, by_lines);
  const bool flat = !by_lines && can_be_flat(p);
  return {
      values("pixels", up_to(p.out_width, pixel_choices)),
      values("lines", up_to(p.out_height, line_choices)),
      values("blocks", up_to(p.out_blocks(), {1, 2})),
      values("half", no_or_yes),
      values("flat", flat ? no_or_yes : std::vector<std::int64_t>{0}),
      values("line_tiles", up_to(tiles, {1, 2, 4, 8, tiles})),
      values("lines_outer", no_or_yes),
      values("copy_source", must_copy ? std::vector<std::int64_t>{1, 2} : std::vector<std::int64_t>{0, 1, 2}),
      values("stream_ahead", by_lines ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{0, 1, 2}),
      values("overlap", no_or_yes),
      values("unroll_steps", {most_copies, 9, 1}),
      values("pairs", no_or_yes)};
}

/// A block's filters meet all images before the next ones come, where filters pass by but images stay.
bool takes_images_inside(const ConvProblem& p, const Machine& machine, const Tiling& tiling) {
  return p.batch > 1 && !tiling.lines_outer && !keeps_filters(p, machine) &&
         copied_bytes(p, tiling.flat) <= 0.75 * static_cast<double>(machine.l2_bytes);
}

void write_output(ScheduleWriter& writer, const std::string& out, const Tiling& tiling,
                  const Machine& machine) {
  std::string channels = "d0";
  writer.add("{}.split(d3, b, q, {}, TailStrategy::ShiftInwards);", out, tiling.blocks);
  if (tiling.half) {
    writer.add("{}.split(d0, h, c, {}, TailStrategy::RoundUp);", out, amx_tile_columns);
    channels = "c";
  }
  const std::string halves = tiling.half ? "h, " : "";
  if (tiling.flat) {
    const char* tasks = tiling.images_inside ? "d4, b" : "b, d4";
    writer.add("{}.reorder({}, d1, d2, q, {}{}).vectorize({});", out, channels, halves, tasks, channels);
    if (machine.threads > 1) writer.add("{}.fuse({}, task1).parallel(task1);", out, tasks);
    return;
  }
  writer.add("{}.split(d1, t, i, {}, TailStrategy::ShiftInwards);", out, tiling.pixels);
  writer.add("{}.split(d2, l, j, {}, TailStrategy::ShiftInwards);", out, tiling.lines);
  writer.add("{}.split(l, ll, l, {}, TailStrategy::GuardWithIf);", out, tiling.line_tiles);
  const char* tasks = tiling.lines_outer ? "b, ll" : tiling.images_inside ? "ll, d4" : "ll, b";
  const char* outermost = tiling.images_inside ? "b" : "d4";
  if (tiling.pairs) {
    writer.add("{}.split(i, i, u, 2, TailStrategy::RoundUp).vectorize(u);", out);
    channels += ", u";
  }
  writer.add("{}.reorder({}, i, j, q, t, l, {}{}, {}).vectorize({});", out, channels, halves, tasks,
             outermost, tiling.half ? "c" : "d0");
  if (tiling.copies_lines && machine.threads > 1)
    writer.add("{}.fuse(ll, d4, task1).parallel(task1);", out);
  else if (machine.threads > 1)
    writer.add("{}.fuse({}, task1).fuse(task1, {}, task2).parallel(task2);", out, tasks, outermost);
}

void write_fold(ScheduleWriter& writer, const ConvProblem& p, const std::string& fold, const std::string& out,
                const Tiling& tiling, const Machine& machine, bool by_lines, const Point& point) {
  const std::int64_t channels = tiling.half ? amx_tile_columns : p.block;
  // Of write_output, where loops are joined.
  const char* block = machine.threads > 1 ? "task1" : tiling.images_inside ? "d4" : "b";
  const char* at = tiling.flat ? (tiling.half ? "h" : block) : "t";
  writer.add("{}.compute_at({}, {}).store_in(MemoryType::Stack);", fold, out, at);
  const char* rows = tiling.flat ? "f" : "d1";
  writer.add("{}.bound_extent(d0, {}).bound_extent({}, {});", fold, channels, rows,
             tiling.pixels * tiling.tiles);
  writer.add("{}.vectorize(d0, {});", fold, amx_tile_columns);
  const std::string window = by_lines ? "r2, r3" : "r2, r3, r4";
  writer.add("{}.update(0).split(d0, c, v, {}, TailStrategy::RoundUp);", fold, amx_tile_columns);
  if (tiling.flat) writer.add("{}.update(0).split(f, s, i, {}, TailStrategy::RoundUp);", fold, tiling.pixels);
  writer.add("{}.update(0).reorder(r0, r1, v, {}, {}, c, {}, d3, d4);", fold, tiling.flat ? "i" : "d1",
             window, tiling.flat ? "s" : "d2");
  writer.add("{}.update(0).{}();", fold, amx_tiles_directive);
  if (get(point, "overlap") != 0) writer.add("{}.{}();", fold, overlap_epilogue_directive);
  if (const std::int64_t copies = get(point, "unroll_steps"); copies > 1)
    writer.add("{}.{}({});", fold, unroll_steps_directive, copies);
}

void write_source(ScheduleWriter& writer, const ConvProblem& p, const std::string& name,
                  const std::string& out, const Tiling& tiling, const Machine& machine, bool by_lines) {
  const bool parallel = machine.threads > 1 && !tiling.copies_lines;
  const std::string source = name + (tiling.flat ? "_flat" : "_in");
  const std::string place = tiling.copies_lines
                                ? fmt::format("compute_at({}, {})", out, machine.threads > 1 ? "task1" : "ll")
                                : "compute_root()";
  if (by_lines) {
    // Lines of a channel are read in vectors, and stored with the other channels between.
    writer.add("{}.{}.split(e, x, c, {}, TailStrategy::RoundUp);", source, place, p.fold_block);
    writer.add("{}.reorder(c, x, y, d4).unroll(c).vectorize(x, {}, TailStrategy::RoundUp);", source,
               machine.vector_floats);
    if (parallel) writer.add("{}.parallel(y);", source);
    return;
  }
  if (!tiling.flat && !tiling.copies_lines) return write_conv_source(writer, p, source, machine);
  writer.add("{}.{};", source, place);
  if (p.x_is_blocked || tiling.flat)
    writer.add("{}.vectorize(d0);", source);
  else
    writer.add("{}.reorder(d0, d1, d2, d3, d4).unroll(d0);", source);
  if (parallel) writer.add("{}.parallel(d3);", source);
}

Candidate candidate_at(const Kernel& kernel, const ConvProblem& p, const Machine& machine, const Point& point,
                       bool by_lines) {
  Tiling tiling = tiling_of(p, point);
  tiling.images_inside = takes_images_inside(p, machine, tiling);
  if (!fits_tiles(p, tiling)) {
    throw UnsupportedError("{} x {} tiles do not fit {} tile registers", tiling.row_tiles(),
                           column_tiles(p, tiling), amx_register_count);
  }
  const std::string out = output_stage(kernel, p.output);
  const std::string& name = kernel.body.value(p.anchor).name;
  ScheduleWriter writer;
  write_output(writer, out, tiling, machine);
  write_fold(writer, p, name + "_fold", out, tiling, machine, by_lines, point);
  if (tiling.flat || get(point, "copy_source") != 0)
    write_source(writer, p, name, out, tiling, machine, by_lines);
  if (const std::int64_t distance = get(point, "stream_ahead"); distance > 0) {
    const bool repeats_lines = machine.threads == 1 && !tiling.lines_outer;
    const char* lines = tiling.images_inside ? "d4" : "ll";
    const char* loop = tiling.flat ? (tiling.half ? "h" : "d1") : repeats_lines ? lines : "l";
    write_stream(writer, kernel, p.weight, out, loop, distance);
  }
  if (by_lines) return {Form{"conv_lines", {}}, writer.take()};
  return {Form{"conv_tiles", {{"flat", tiling.flat ? 1 : 0}}}, writer.take()};
}

double cost_of(const ConvProblem& p, const Machine& machine, const Point& point, bool by_lines) {
  const Tiling tiling = tiling_of(p, point);
  double cycles = tile_cycles(p, machine, tiling, by_lines);
  constexpr double bytes_per_cycle = 8;
  if (tiling.flat || get(point, "copy_source") != 0)
    cycles += copied_bytes(p, tiling.flat) * (p.x_is_blocked ? 2.0 : 6.0) / bytes_per_cycle;
  const double tasks = task_count(p, tiling);
  constexpr double task_cycles = 600;
  return seconds_per_cycle / machine.threads *
         (cycles * imbalance(tasks, machine.threads) + task_cycles * tasks);
}

template <bool by_lines>
Reading<ConvProblem> read(const Kernel& kernel) {
  return by_lines ? read_conv_lines(kernel) : read_conv_tiles(kernel);
}

template <bool by_lines>
Space space_named(const char* name) {
  return {
      .name = name,
      .refuses = [](const Kernel& kernel, const Machine& machine) -> std::string {
        std::string refusal = read<by_lines>(kernel).refusal;
        if (!refusal.empty()) return refusal;
        return machine.amx ? "" : "the processor has no AMX, or the system does not let programs use it";
      },
      .parameters =
          [](const Kernel& kernel, const Machine& machine) {
            return parameters_of(kernel, read<by_lines>(kernel).problem, machine, by_lines);
          },
      .heuristic =
          [](const Kernel& kernel, const Machine& machine) {
            return heuristic_point(kernel, read<by_lines>(kernel).problem, machine, by_lines);
          },
      .at =
          [](const Kernel& kernel, const Machine& machine, const Point& point) {
            return candidate_at(kernel, read<by_lines>(kernel).problem, machine, point, by_lines);
          },
      .cost =
          [](const Kernel& kernel, const Machine& machine, const Point& point) {
            return cost_of(read<by_lines>(kernel).problem, machine, point, by_lines);
          },
  };
}

}  // namespace

const Space conv_amx_space = space_named<false>("conv_amx");
const Space conv_lines_amx_space = space_named<true>("conv_lines_amx");

}  // namespace sylvite
