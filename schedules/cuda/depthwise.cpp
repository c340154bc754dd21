#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rounding.h"
#include "schedules/cuda/grouped.h"
#include "schedules/cuda/rated.h"
#include "schedules/cuda/sources.h"

namespace sylvite {
namespace {

using Windows = CudaMatmulProblem::Windows;

constexpr std::int64_t most_held = 150;  // numbers in a thread's registers, beside addresses

/// Taps of a line that a thread holds at once. Of long ones it would hold the pixels that its tile meets, and no room is left for
/// a tile that shares them.
std::int64_t segment_of(const Windows& w) {
  constexpr std::int64_t most_whole = 31, enough = 16;
  if (w.taps_x <= most_whole) return w.taps_x;
  return ceil_div(w.taps_x, ceil_div(w.taps_x, enough));
}

/// How a thread walks along an axis, in the steps that depthwise.cuh tells of.
struct Walk {
  std::int64_t step, span, tiles,
      covered;  ///< span: lines, or columns of a segment, met; covered: pixels of all tiles
};

Walk walk_along(std::int64_t tile, std::int64_t stride, std::int64_t taps, std::int64_t dilation,
                std::int64_t extent) {
  const std::int64_t step = stride == 1 ? dilation : 1, covered = round_up(extent, step * tile);
  return {step, span_of(tile, stride, taps, dilation / step), covered / tile, covered};
}
Walk walk_y(const Windows& w, const CudaDepthwiseChoice& c) {
  return walk_along(c.tile_y, w.stride_y, w.taps_y, w.dilation_y, w.out_lines);
}
Walk walk_x(const Windows& w, const CudaDepthwiseChoice& c) {
  return walk_along(c.tile_x, w.stride_x, segment_of(w), w.dilation_x, w.out_columns);
}
BlockCount tiles_along(std::int64_t extent, std::int64_t tile, const Walk& walk) {
  return BlockCount(extent).in_parts_of(walk.step * tile) * walk.step;
}
BlockCount tiles_in_all(const Windows& w, const CudaDepthwiseChoice& c) {
  return BlockCount(w.images * w.out_frames) * tiles_along(w.out_lines, c.tile_y, walk_y(w, c)) *
         tiles_along(w.out_columns, c.tile_x, walk_x(w, c));
}

/// Sums, a line of the window, and its weights.
std::int64_t held(const Windows& w, const CudaDepthwiseChoice& c) {
  return c.vector * (std::int64_t{c.tile_y} * c.tile_x + walk_x(w, c).span + 2);
}

/// Instructions for an element of the result: products, and loads and conversions that its tile shares.
double instructions(const Windows& w, const CudaDepthwiseChoice& c) {
  const double pixels = c.tile_y * c.tile_x, conversion = 1 + 1. / c.vector;
  const auto lines = static_cast<double>(walk_y(w, c).span);
  const auto columns = static_cast<double>(walk_x(w, c).span * ceil_div(w.taps_x, segment_of(w)));
  const auto taps = static_cast<double>(w.taps());
  const auto frames = static_cast<double>(w.taps_z);
  return taps + frames * lines * columns / pixels * (conversion + 2. / c.vector) +
         taps / c.tile_x * conversion + 4;
}

/// How much more is covered than there is.
double waste(std::int64_t extent, std::int64_t covered) {
  return static_cast<double>(covered) / static_cast<double>(extent);
}
/// Of lanes that vectors of channels are dealt to.
double idle_lanes(std::int64_t vectors, int lanes) {
  return waste(vectors, round_up(vectors, std::int64_t{lanes}));
}

double rate(const CudaGroupedProblem& problem, const CudaDepthwiseChoice& c) {
  constexpr double wanted_threads = 132 * 512;  // fewer do not hide the way to memory
  const Windows& w = problem.windows;
  const std::int64_t vectors = w.channels / c.vector;
  const auto threads = static_cast<double>(tiles_in_all(w, c).value() * vectors);
  const double starved = std::max(1., std::sqrt(wanted_threads / threads));
  // Registers of many numbers leave place for few threads.
  const double crowded = 1 + std::max(0., static_cast<double>(held(w, c)) - 96) / 160;
  const double idle = idle_lanes(vectors, c.lanes);
  return instructions(w, c) * waste(w.out_lines, walk_y(w, c).covered) *
         waste(w.out_columns, walk_x(w, c).covered) * starved * crowded * idle;
}

std::string fold_text(const CudaGroupedProblem& problem) {
  constexpr const char* folds[] = {"PRODUCTS", "LARGEST", "MEAN"};
  return fmt::format(
      "enum {{ PRODUCTS, LARGEST, MEAN }};\nconstexpr int FOLD = {}, PAD_AFTER_Z = {}, PAD_AFTER_Y = {}, "
      "PAD_AFTER_X = {};\n"
      "constexpr bool COUNTS_PADDING = {}, FILTER_BY_CHANNEL = {};\n",
      folds[static_cast<std::size_t>(problem.fold)], problem.pad_after_z, problem.pad_after_y,
      problem.pad_after_x, problem.counts_padding, problem.filter_by_channel);
}

int lanes_of(std::int64_t vectors) {
  int lanes = 1;
  while (lanes < 32 && lanes < vectors) lanes *= 2;
  // Lanes without channels are idle threads.
  while (lanes > 4 && idle_lanes(vectors, lanes) > 1.15) lanes /= 2;
  return lanes;
}

}  // namespace

std::string CudaDepthwiseChoice::to_string() const {
  return fmt::format("vector {} tile {}x{} lanes {} threads {}", vector, tile_y, tile_x, lanes, threads);
}

std::vector<CudaDepthwiseChoice> cuda_depthwise_choices(const CudaGroupedProblem& problem) {
  constexpr std::size_t most_choices = 24;
  const Windows& w = problem.windows;
  std::vector<Rated<CudaDepthwiseChoice>> rated;
  for (const int vector : {2, 4, 8}) {
    if (w.channels % vector != 0 || (problem.element == DType::f32 && vector == 8)) continue;
    for (const int tile_y : {1, 2, 4}) {
      for (const int tile_x : {1, 2, 4, 7, 8}) {
        for (const int threads : {128, 256}) {
          const CudaDepthwiseChoice c = {vector, tile_y, tile_x, lanes_of(w.channels / vector), threads};
          if (held(w, c) > most_held || tile_y > w.out_lines || tile_x > w.out_columns) continue;
          rated.emplace_back(rate(problem, c) + (threads == 256 ? 0.01 : 0), c);
        }
      }
    }
  }
  return best_first(std::move(rated), most_choices);
}

CudaTemplate make_cuda_depthwise(const CudaGroupedProblem& problem, const CudaDepthwiseChoice& choice) {
  constexpr std::int64_t most_unrolled = 9;  // taps; more would be much code
  const Windows& w = problem.windows;
  CudaTemplate result;
  LaunchSpec& launch = result.launch;
  const std::int64_t positions = choice.threads / choice.lanes;
  launch.entry = fmt::format("{}_{}_{}x{}x{}_{}", problem.filter < 0 ? "pooling" : "depthwise",
                             dtype_name(problem.element), w.taps_z, w.taps_y, w.taps_x, w.channels);
  result.source.text = grouped_text(problem, choice.vector, launch.entry);
  result.source.text += fold_text(problem);
  result.source.text += fmt::format(
      "constexpr int TILE_Y = {}, TILE_X = {}, LANES = {}, POSITIONS = {}, UNROLL = {}, SEGMENT = {};\n",
      choice.tile_y, choice.tile_x, choice.lanes, positions,
      w.taps() <= most_unrolled ? walk_y(w, choice).span : 1, segment_of(w));
  result.source.text += embedded::cuda_depthwise;
  const std::int64_t strips = ceil_div(w.channels / choice.vector, std::int64_t{choice.lanes});
  launch.shape.set_blocks(tiles_in_all(w, choice).in_parts_of(positions) * strips);
  launch.shape.block[0] = static_cast<unsigned>(choice.threads);
  launch.shape.programmatic = true;
  launch.pointers = grouped_pointers(problem);
  launch.numbers = extent_numbers(window_extents(problem));
  return result;
}

}  // namespace sylvite
