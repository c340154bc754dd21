#include "schedules/spaces/conv_tile.h"

#include <algorithm>

#include "schedules/bind_space.h"
#include "schedules/directives/even_odd_lanes.h"

namespace sylvite {
namespace {

/// What it takes in a step of a tile that the source comes from the L2 or from behind it, once for every tile
/// of blocks: few blocks at a time leave little else to do. Only AVX2's tiles have so few.
double source_cycles(const ConvProblem& problem, const Machine& machine, const ConvTiling& tiling) {
  const std::int64_t bytes = dtype_size(problem.element) * problem.channels * problem.height * problem.width;
  if (!has_small_tiles(machine) || problem.depthwise || problem.groups > 1 || bytes <= machine.l1_bytes)
    return 0;
  const double pixel_cycles = bytes <= machine.l2_bytes / 2 ? 0.25 : 0.5;
  return pixel_cycles * static_cast<double>(tiling.pixels * tiling.lines) /
         static_cast<double>(problem.kernel_x * problem.kernel_y);
}

/// What it takes in a step of a tile that its filters come from the L2 or from behind it, once for every tile of pixels: more
/// where nothing fetches them ahead, as with large windows, and of open images, whose tiles would have few pixels else.
double filter_cycles(const ConvProblem& problem, const ImageRoom& room, const Machine& machine,
                     const ConvTiling& tiling) {
  const std::int64_t vectors = tiling.blocks * problem.block / machine.vector_floats;
  const std::int64_t bytes = filter_bytes(problem, tiling.blocks);
  if (problem.depthwise || bytes <= machine.l1_bytes / 2) return 0;
  if (!problem.packs_weight && !room.is_open) return wait_for_l2(machine, conv_registers(problem, tiling));
  return (bytes <= machine.l2_bytes / 2 ? 1 : 2) * static_cast<double>(vectors);
}

/// Open extents are near this one: the mean over tails, and of lines that have some size half of that.
double tile_count(std::int64_t extent, std::int64_t tile, const ImageRoom& room) {
  const auto whole = static_cast<double>(ceil_div(extent, tile));
  const double mean = static_cast<double>(2 * extent + tile - 1) / static_cast<double>(2 * tile);
  return room.is_line ? mean : room.is_open ? (whole + mean) / 2 : whole;
}

/// Registers that a depthwise tile takes beside its accumulators count as many again: its unrolled window.
/// Neighbours that share no inputs leave less to keep: there each vector of a block counts. Whole lines have
/// no edges to look for, and are worth spilling a few.
bool is_crowded(const ConvProblem& problem, const Machine& machine, const ConvTiling& tiling) {
  if (!problem.depthwise) return false;
  const bool even_odd = takes_even_odd(problem, machine);
  const bool apart = problem.stride_x > 1;
  const bool counts = apart || (even_odd && tiling.pixels < problem.out_width);
  const std::int64_t vectors = counts ? ceil_div(problem.block, machine.vector_floats) : 1;
  const std::int64_t window = apart && even_odd ? 2 : 1;
  return 2 * tiling.pixels * tiling.lines * vectors * window > machine.vector_registers;
}

}  // namespace

RegisterTile conv_registers(const ConvProblem& problem, const ConvTiling& tiling) {
  return {tiling.pixels * tiling.lines, tiling.blocks, std::min(problem.block, panel_width)};
}

std::int64_t sums_of_lines(const ConvProblem& problem, const ConvTiling& tiling) {
  return tiling.lines * problem.out_width * tiling.blocks * problem.block;
}

std::int64_t tiles_to_divide(const ConvProblem& problem, const ConvTiling& tiling) {
  return tiling.is_line ? ceil_div(problem.out_width, tiling.pixels)
                        : ceil_div(problem.out_height, tiling.lines);
}

ConvTiling conv_tiling(const ConvProblem& problem, const ImageRoom& room, const ConvNumbers& point) {
  ConvTiling tiling{};
  tiling.pixels = std::min(point.pixels, room.pixels);
  tiling.lines = std::min(point.lines, room.lines);
  tiling.blocks = std::min(point.blocks, problem.out_blocks());
  tiling.is_line = room.is_line;
  tiling.line_tiles =
      room.is_open ? point.line_tiles : std::min(point.line_tiles, tiles_to_divide(problem, tiling));
  tiling.copies_lines = point.copy_source == 2 && point.slices == 0;
  tiling.lines_outer = tiling.copies_lines || point.lines_outer != 0;
  if (point.slices != 0) {
    const std::int64_t most = std::max<std::int64_t>(1, most_conv_sums / sums_of_lines(problem, tiling));
    tiling.line_tiles = std::min(tiling.line_tiles, most);
  }
  return tiling;
}

double conv_tasks(const ConvProblem& problem, const ConvTiling& tiling) {
  const std::int64_t blocks = tiling.copies_lines ? 1 : ceil_div(problem.out_blocks(), tiling.blocks);
  return static_cast<double>(problem.batch * ceil_div(tiles_to_divide(problem, tiling), tiling.line_tiles) *
                             blocks);
}

double conv_cycles(const ConvProblem& problem, const ImageRoom& room, const Machine& machine,
                   const ConvTiling& tiling) {
  const double tiles = static_cast<double>(problem.batch) *
                       tile_count(problem.out_width, tiling.pixels, room) *
                       tile_count(problem.out_height, tiling.lines, room);
  const auto block_tiles = static_cast<double>(ceil_div(problem.out_blocks(), tiling.blocks));
  const auto steps = static_cast<double>(problem.fold_steps());
  return tiled_cycles(machine, conv_registers(problem, tiling), tiles, block_tiles, steps) +
         tiles * block_tiles * steps *
             (source_cycles(problem, machine, tiling) + filter_cycles(problem, room, machine, tiling));
}

std::vector<std::int64_t> conv_line_choices(const ImageRoom& room) {
  return up_to(room.lines, {1, 2, room.lines == 3 ? 3 : 4});
}

bool has_large_window(const ConvProblem& problem) {
  return problem.kernel_x * problem.kernel_y > 25;
}

std::vector<std::int64_t> conv_block_choices(const ConvProblem& problem) {
  if (problem.depthwise) return {1};
  std::vector<std::int64_t> choices = up_to(problem.out_blocks(), {2, 4, 3, 1});
  // Blocks of different groups read different channels.
  if (problem.groups > 1) {
    const GroupedChannels channels = problem.grouped();
    std::erase_if(choices, [&](std::int64_t blocks) {
      return blocks > 1 && channels.outputs % (blocks * channels.block) != 0;
    });
  }
  return choices;
}

bool takes_even_odd(const ConvProblem& problem, const Machine& machine) {
  return problem.depthwise && problem.element == DType::bf16 && machine.bf16_products &&
         problem.block == even_odd_lanes;
}

ConvTiling best_conv_tile(const ConvProblem& problem, const ImageRoom& room, const Machine& machine,
                          bool whole) {
  ConvTiling best{1, 1, 1, 1, false, false, room.is_line};
  const bool shares =
      problem.out_blocks() == 1 && !problem.depthwise && filter_bytes(problem, 1) > machine.l1_bytes;
  const double of_lines = shares ? 0.97 : 1.03;
  double best_cycles = conv_cycles(problem, room, machine, best);
  for (const std::int64_t pixels : up_to(room.pixels, conv_pixel_choices)) {
    for (const std::int64_t lines : conv_line_choices(room)) {
      for (const std::int64_t blocks : conv_block_choices(problem)) {
        const ConvTiling tiling{pixels, lines, blocks, 1, false, false, room.is_line};
        const double cycles = conv_cycles(problem, room, machine, tiling) * (lines > 1 ? of_lines : 1.0);
        const bool leaves_tail = problem.out_width % pixels != 0 || problem.out_height % lines != 0;
        const bool fits = fits_registers(machine, conv_registers(problem, tiling)) &&
                          !is_crowded(problem, machine, tiling) && !(whole && leaves_tail);
        if (!fits || cycles >= best_cycles) continue;
        best = tiling;
        best_cycles = cycles;
      }
    }
  }
  return best;
}

}  // namespace sylvite
