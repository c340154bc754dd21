#pragma once
// A rough model of the micro-kernels that matmul and convolution share: `rows` broadcast elements times
// `panels` vectors of 16 columns, accumulated in registers. For ranking and first guesses; measurement
// decides.

#include <cstdint>
#include <string>
#include <vector>

#include "base/rounding.h"
#include "lowering/algorithms/problems.h"
#include "schedules/candidate.h"
#include "schedules/machine.h"
#include "sylvite/types.h"

namespace sylvite {

struct RegisterTile {
  std::int64_t rows = 1;
  std::int64_t panels = 1;
  std::int64_t panel_floats = panel_width;  ///< columns of a panel
};

/// Empty when the processor multiplies `element`s as templates do, else why not.
[[nodiscard]] std::string product_refusal(const Machine& machine, DType element);

/// As with AVX2: sixteen registers of eight floats, not the thirty-two of sixteen that AVX-512 has.
[[nodiscard]] bool has_small_tiles(const Machine& machine);

/// Are products of bytes made of i16? Halide's targets multiply bytes where they multiply bf16.
[[nodiscard]] bool widens_bytes(DType element, const Machine& machine);

/// The accumulators, one vector of each panel and one broadcast must fit the registers.
[[nodiscard]] bool fits_registers(const Machine& machine, const RegisterTile& tile);

/// Cycles for one step of the fold: limited by multiply-adds, loads or the latency of a chain.
[[nodiscard]] double step_cycles(const Machine& machine, const RegisterTile& tile);

/// What such a step takes longer where the vectors of panels come from the L2: with few rows there is too little to do meanwhile.
[[nodiscard]] double wait_for_l2(const Machine& machine, const RegisterTile& tile);

/// Tiles times cycles, with the waste of tails: `rows` and `panels` are the whole extents, `steps` the fold's
/// length.
[[nodiscard]] double tiled_cycles(const Machine& machine, const RegisterTile& tile, double rows_tiles,
                                  double panel_tiles, double steps);

/// The time of the busiest thread over the mean: tasks are whole.
[[nodiscard]] double imbalance(double tasks, int threads);

/// Of `tiles` tiles of lines, how many make a task: with at least `least_parts` tasks. Of numbers up to twice
/// too small, one that divides the tiles makes tasks equal. Two tasks are halves: a third reads all weights again for what is left.
[[nodiscard]] std::int64_t tiles_in_task(std::int64_t tiles, std::int64_t least_parts);

/// A fold over at most so many channels of a block is unrolled whole. AVX2's tiles and blocks are small: its
/// loop took a quarter of the time of ResNet-50's 1x1 convolutions.
inline constexpr int unrolled_channels = 8;

/// Cycles of a 3 GHz core, as seconds; only ratios matter.
inline constexpr double seconds_per_cycle = 1.0 / 3e9;

}  // namespace sylvite
