#pragma once
// Products of f32 matrices from packed panels, with vectors as wide as this processor has.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sylvite::quick {

/// c[rows, panel] += a[rows, depth] b[depth, panel] for a number of rows that the function is made for. `a_stride` and
/// `c_stride` are the elements between rows.
using Tile = void (*)(const float* a, std::int64_t a_stride, const float* b, float* c, std::int64_t c_stride,
                      std::int64_t depth);

constexpr std::int64_t most_tile_rows = 14;
constexpr std::int64_t most_panel_columns = 32;

/// Tiles of one instruction set.
struct Tiles {
  std::string_view name;
  std::int64_t panel = 0;                     ///< columns of a tile: two vectors
  std::int64_t rows = 0;                      ///< of the largest tile, as many as registers allow
  std::array<Tile, most_tile_rows + 1> of{};  ///< by rows, from 1 on
};

/// Those that this processor can run, the fastest first.
[[nodiscard]] const std::vector<Tiles>& usable_tiles();

/// c[rows, columns] += a[rows, depth] b. b lies in panels, one behind another: [depth, panel] each, whose last may be filled
/// up with anything.
void multiply_panels(const Tiles& tiles, const float* a, std::int64_t a_stride, const float* panels, float* c,
                     std::int64_t c_stride, std::int64_t rows, std::int64_t depth, std::int64_t columns);

}  // namespace sylvite::quick
