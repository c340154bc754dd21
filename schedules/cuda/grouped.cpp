#include "schedules/cuda/grouped.h"

#include <algorithm>

#include "base/error.h"
#include "base/rounding.h"
#include "lowering/plan/grouped_filter.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

using Windows = CudaMatmulProblem::Windows;

struct Unit {
  std::int64_t real_in = 0, real_out = 0;
  std::int64_t in = 0, out = 0;  ///< with padding
  std::int64_t count = 1;
};

std::int64_t bytes_of(const CudaGroupedProblem& problem) {
  return static_cast<std::int64_t>(dtype_size(problem.element));
}

/// A product takes 32 bytes of each pixel's channels, and makes multiples of 16 channels.
Unit unit_of(const CudaGroupedProblem& problem) {
  constexpr std::int64_t slice = 32, step = 16;
  std::int64_t groups = 1;
  if (problem.groups > 1)
    groups = groups_of_unit(problem.groups, problem.group_inputs(), problem.group_outputs());
  const std::int64_t in = groups * problem.group_inputs(), out = groups * problem.group_outputs();
  return {in, out, round_up(in, slice / bytes_of(problem)), round_up(out, step), problem.groups / groups};
}

std::int64_t pixels_of(const CudaGroupedChoice& c) {
  return std::int64_t{c.tile_z} * c.tile_y * c.tile_x;
}

/// What a block of a choice has; the names are those of schedules/cuda/grouped.cuh.
struct Block {
  std::int64_t span = 0;  ///< pixels that the windows of a tile meet
  std::int64_t in = 0, threads = 0, shared_bytes = 0, tiles = 0, strips = 0;

  Block(const CudaGroupedProblem& problem, const CudaGroupedChoice& c) {
    const Windows& w = problem.windows;
    const Unit unit = unit_of(problem);
    const std::int64_t rows = std::min<std::int64_t>(c.outputs, unit.out), units = c.outputs / rows;
    const std::int64_t bytes = bytes_of(problem);
    span = span_of(c.tile_z, w.stride_z, w.taps_z, w.dilation_z) *
           span_of(c.tile_y, w.stride_y, w.taps_y, w.dilation_y) *
           span_of(c.tile_x, w.stride_x, w.taps_x, w.dilation_x);
    in = units * unit.in;
    threads = 32 * ceil_div(pixels_of(c), std::int64_t{16} * c.pixels) * (c.outputs / c.columns);
    shared_bytes = units * w.taps() * rows * (bytes * unit.in + 16) + 2 * span * (bytes * in + 16);
    tiles = tiles_of(w, c.tile_y, c.tile_x, c.tile_z);
    strips = unit.count * unit.out / c.outputs;
  }
  /// Blocks that a multiprocessor runs side by side.
  [[nodiscard]] std::int64_t beside(const Card& card) const {
    constexpr std::int64_t most_threads = 1024;
    return std::max<std::int64_t>(
        1, std::min(card.shared_bytes / (shared_bytes + 1024), most_threads / threads));
  }
};

/// Seconds of a multiprocessor for a tile, but for a factor: bytes that it moves, and products.
double tile_cost(const CudaGroupedProblem& problem, const CudaGroupedChoice& c, const Block& block) {
  constexpr double bytes_per_clock = 18, start = 600;  // clocks
  const double products_per_clock = c.exact ? 100 : problem.element == DType::f32 ? 250 : 600;
  const Unit unit = unit_of(problem);
  const auto bytes =
      static_cast<double>(bytes_of(problem) * (block.span * block.in + pixels_of(c) * c.outputs));
  const std::int64_t rows = round_up(pixels_of(c), std::int64_t{16} * c.pixels);
  const auto products = static_cast<double>(rows * c.outputs * unit.in * problem.windows.taps());
  return std::max(bytes / bytes_per_clock, products / products_per_clock) + start;
}

double rate_of_groups(const CudaGroupedProblem& problem, const CudaGroupedChoice& c, const Card& card) {
  const Block block(problem, c);
  const std::int64_t beside = block.beside(card);
  const std::int64_t turns = ceil_div(block.tiles, std::int64_t{c.parts}) *
                             ceil_div(block.strips * c.parts, std::int64_t{card.multiprocessors} * beside);
  // Blocks side by side hide each other's waits, but share what a multiprocessor can do.
  const double shared = static_cast<double>(beside) / (beside == 1 ? 0.6 : beside == 2 ? 0.85 : 1.);
  const double narrow = block.in * bytes_of(problem) < 64 ? 1.3 : 1;  // parts of memory's lines
  return static_cast<double>(turns) * shared * tile_cost(problem, c, block) * narrow;
}

void add_parts(const CudaGroupedProblem& problem, CudaGroupedChoice c, const Card& card,
               std::vector<Rated<CudaGroupedChoice>>& rated) {
  constexpr std::int64_t most_threads = 512;
  constexpr int most_exact =
      64;  // pixels by channels, in sixteens of pixels: there are sums of rests beside them
  if (c.exact && c.pixels * c.columns > most_exact) return;
  const Block block(problem, c);
  if (block.threads > most_threads || block.shared_bytes > card.shared_bytes) return;
  const std::int64_t most = card.multiprocessors * block.beside(card);
  const std::int64_t parts = std::clamp<std::int64_t>(most / block.strips, 1, block.tiles);
  // As many as take equally many turns.
  c.parts = static_cast<int>(ceil_div(block.tiles, ceil_div(block.tiles, parts)));
  rated.emplace_back(rate_of_groups(problem, c, card), c);
}

/// Tiles worth trying, as choices of nothing else. Signals are one line, of which a tile may have as much as of an image.
std::vector<CudaGroupedChoice> tiles_for(const Windows& w) {
  constexpr std::int64_t least = 16, most = 256;  // pixels
  const std::vector<int> of_line =
      w.out_lines == 1 ? std::vector{8, 14, 16, 28, 32, 64, 128, 256} : std::vector{4, 7, 8, 14, 16, 28};
  std::vector<CudaGroupedChoice> tiles;
  for (const int tile_z : {1, 2, 4, 8}) {
    if (tile_z > 1 && tile_z >= 2 * w.out_frames) continue;
    for (const int tile_y : {1, 2, 4, 7, 8, 14, 16}) {
      for (const int tile_x : of_line) {
        CudaGroupedChoice tile;
        tile.tile_z = tile_z;
        tile.tile_y = tile_y;
        tile.tile_x = tile_x;
        if (pixels_of(tile) >= least && pixels_of(tile) <= most && tile_y < w.out_lines + 4 &&
            tile_x < w.out_columns + 4)
          tiles.push_back(tile);
      }
    }
  }
  return tiles;
}

void add_channels(const CudaGroupedProblem& problem, CudaGroupedChoice c, const Card& card,
                  std::vector<Rated<CudaGroupedChoice>>& rated) {
  const std::int64_t unit = unit_of(problem).out, all = unit_of(problem).count * unit;
  for (const int outputs : {16, 32, 48, 64, 80, 96, 112, 128}) {
    if (all % outputs != 0 || (outputs % unit != 0 && unit % outputs != 0)) continue;
    for (const int columns : {16, 32}) {
      if (outputs % columns != 0 || unit % columns != 0) continue;
      if (unit_of(problem).real_out % (columns / 4) != 0)
        continue;  // a thread's channels are all there or none
      for (const int pixels : {1, 2, 4}) {
        if (std::int64_t{16} * pixels > round_up(pixels_of(c), std::int64_t{16})) continue;
        c.outputs = outputs;
        c.columns = columns;
        c.pixels = pixels;
        add_parts(problem, c, card, rated);
      }
    }
  }
}

}  // namespace

std::string CudaGroupedChoice::to_string() const {
  return fmt::format("tile {}x{}x{} outputs {} columns {} pixels {} parts {}{}", tile_z, tile_y, tile_x,
                     outputs, columns, pixels, parts, exact ? " exact" : "");
}

std::vector<CudaGroupedChoice> cuda_grouped_choices(const CudaGroupedProblem& problem, bool exact,
                                                    const Card& card) {
  constexpr std::size_t most_choices = 24;
  std::vector<Rated<CudaGroupedChoice>> rated;
  for (CudaGroupedChoice& tile : tiles_for(problem.windows)) {
    tile.exact = exact;
    add_channels(problem, tile, card, rated);
  }
  return best_first(std::move(rated), most_choices);
}

CudaTemplate make_cuda_grouped(const CudaGroupedProblem& problem, const CudaGroupedChoice& choice) {
  constexpr std::int64_t most_unrolled = 512;  // products
  const Windows& w = problem.windows;
  const Unit unit = unit_of(problem);
  const Block block(problem, choice);
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  launch.entry = fmt::format("grouped_{}_{}x{}x{}_{}_{}", dtype_name(problem.element), w.taps_z, w.taps_y,
                             w.taps_x, problem.outputs, problem.groups);
  const std::int64_t slices = unit.in * bytes_of(problem) / 32;
  const std::int64_t products =
      w.taps() * slices * choice.pixels * choice.columns / 8 * (choice.exact ? 3 : 1);
  result.source.text = grouped_text(problem, choice.columns / 4, launch.entry);
  result.source.text += fmt::format(
      "constexpr int REAL_IN = {}, REAL_OUT = {}, UNITS_IN_ALL = {};\n"
      "constexpr int GROUP_IN = {}, GROUP_OUT = {}, UNIT_IN = {}, UNIT_OUT = {}, TILE_Z = {}, TILE_Y = {}, "
      "TILE_X = {}, "
      "BLOCK_OUT = {}, PARTS = {},\n              WARP_OUT = {}, PIXELS = {}, UNROLL = {};\nconstexpr bool "
      "EXACT = {};\n",
      unit.real_in, unit.real_out, unit.count, problem.group_inputs(), problem.group_outputs(), unit.in,
      unit.out, choice.tile_z, choice.tile_y, choice.tile_x, choice.outputs, choice.parts, choice.columns,
      choice.pixels, products <= most_unrolled ? w.taps() : 1, choice.exact);
  result.source.text += embedded::cuda_grouped;
  launch.shape.set_blocks(BlockCount(block.strips) * choice.parts);
  launch.shape.block[0] = static_cast<unsigned>(block.threads);
  launch.shape.shared_bytes = static_cast<unsigned>(block.shared_bytes);
  launch.shape.programmatic = true;
  launch.pointers = grouped_pointers(problem);
  launch.numbers = extent_numbers(window_extents(problem));
  return result;
}

}  // namespace sylvite
