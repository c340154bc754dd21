#pragma once
// The register tile of a convolution over blocks of channels: its numbers, and what it is estimated to take. Internal to schedules/.

#include <cstdint>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/machine.h"
#include "schedules/spaces/conv_source.h"
#include "schedules/spaces/register_tile.h"

namespace sylvite {

/// A point of the spaces: see space_conv.cpp.
struct ConvNumbers {
  std::int64_t pixels = 1;
  std::int64_t lines = 1;
  std::int64_t blocks = 1;
  std::int64_t line_tiles = 1;
  std::int64_t lines_outer = 0;
  std::int64_t copy_source = 0;
  std::int64_t unroll_channels = 1;
  std::int64_t even_odd = 0;
  std::int64_t stream_ahead = 0;
  std::int64_t slices = 0;
};

/// A point's numbers, clamped to the problem's extents.
struct ConvTiling {
  std::int64_t pixels;
  std::int64_t lines;
  std::int64_t blocks;
  std::int64_t line_tiles;
  bool lines_outer;
  bool copies_lines;
  bool is_line;  ///< tasks are tiles of one line
};

[[nodiscard]] ConvTiling conv_tiling(const ConvProblem& problem, const ImageRoom& room,
                                     const ConvNumbers& point);

[[nodiscard]] RegisterTile conv_registers(const ConvProblem& problem, const ConvTiling& tiling);

inline constexpr std::int64_t most_conv_sums = 1 << 14;  ///< of a task's slices, on the stack of a thread
/// Of one tile of lines, over their whole width.
[[nodiscard]] std::int64_t sums_of_lines(const ConvProblem& problem, const ConvTiling& tiling);

/// How many tiles of lines, or of one open line, there are for tasks to divide.
[[nodiscard]] std::int64_t tiles_to_divide(const ConvProblem& problem, const ConvTiling& tiling);
[[nodiscard]] double conv_tasks(const ConvProblem& problem, const ConvTiling& tiling);

/// Of all products, and of waiting for what they read; without copies and tasks.
[[nodiscard]] double conv_cycles(const ConvProblem& problem, const ImageRoom& room, const Machine& machine,
                                 const ConvTiling& tiling);

/// A window of too many products to be unrolled.
[[nodiscard]] bool has_large_window(const ConvProblem& problem);

/// Depthwise in bf16: each stored element is multiplied a few times only, and a vector of them is a block.
[[nodiscard]] bool takes_even_odd(const ConvProblem& problem, const Machine& machine);

inline const std::vector<std::int64_t> conv_pixel_choices = {14, 7, 8, 10, 12, 13, 6, 5, 4, 3, 2, 1};
/// Few lines at once; of maps that have fewer than four, all.
[[nodiscard]] std::vector<std::int64_t> conv_line_choices(const ImageRoom& room);
[[nodiscard]] std::vector<std::int64_t> conv_block_choices(const ConvProblem& problem);

/// The tile that the model likes best; one line at a time, unless lines are short, or a single block's filters come from behind the
/// L1, where lines share them. With `whole`, of those that leave no tail.
[[nodiscard]] ConvTiling best_conv_tile(const ConvProblem& problem, const ImageRoom& room,
                                        const Machine& machine, bool whole = false);

}  // namespace sylvite
