#pragma once
// Convolutions of bf16 for AMX: what the forms conv_tiles and conv_lines, and the spaces of them, must know.

#include <cstdint>
#include <vector>

#include "lowering/algorithms/algorithm.h"
#include "lowering/algorithms/problems.h"

namespace sylvite {

inline constexpr int conv_tile_depth = 32;  ///< bf16 channels in a row of a tile

/// As read_conv without depthwise: blocks have a multiple of conv_tile_depth channels, and the fold takes
/// whole blocks, padding too: its weights are zero.
[[nodiscard]] Reading<ConvProblem> read_conv_tiles(const Kernel& kernel);
/// Likewise of an image with few channels that are not blocked: the channels of a window's line lie together,
/// rounded up to even, and the fold takes them at once. At most conv_tile_depth of them, or a multiple of it.
[[nodiscard]] Reading<ConvProblem> read_conv_lines(const Kernel& kernel);

/// Of conv_tiles{flat=1}: pixels from an output's line to the next in a plane whose lines lie one behind the
/// other. With strides of 1 that is a line with its border, and the window moves through one plane; otherwise
/// every place of the window has a plane of its own, with the pixels that it meets and no others.
[[nodiscard]] std::int64_t flat_pitch(const ConvProblem& problem);

[[nodiscard]] std::vector<Packing> conv_tiles_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_conv_tiles(const Kernel& kernel, const Form& form);
[[nodiscard]] std::vector<Packing> conv_lines_packings(const Kernel& kernel, const Form& form);
[[nodiscard]] Algorithm build_conv_lines(const Kernel& kernel, const Form& form);

}  // namespace sylvite
