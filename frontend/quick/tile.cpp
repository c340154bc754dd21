#include "frontend/quick/tile.h"

#include <algorithm>
#include <utility>

#include "base/rounding.h"

namespace sylvite::quick {
namespace {

template <int lanes>
struct Vector {
  using Type __attribute__((vector_size(lanes * sizeof(float)), aligned(sizeof(float)), may_alias)) = float;
};

/// Of a panel at most, so that it stays in the first cache while all rows of a pass by.
constexpr std::int64_t depth_block = 256;

/// The sums, two vectors for each row, stay in registers.
template <int lanes, int rows>
[[gnu::always_inline]] inline void multiply_tile(const float* a, std::int64_t a_stride, const float* b,
                                                 float* c, std::int64_t c_stride, std::int64_t depth) {
  using V = Vector<lanes>::Type;
  constexpr std::int64_t panel = std::int64_t{2} * lanes;
  V left[rows];
  V right[rows];
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    left[r] = *reinterpret_cast<const V*>(c + r * c_stride);
    right[r] = *reinterpret_cast<const V*>(c + r * c_stride + lanes);
  }
  for (std::int64_t k = 0; k < depth; ++k, b += panel) {
    const V b_left = *reinterpret_cast<const V*>(b);
    const V b_right = *reinterpret_cast<const V*>(b + lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      const float x = a[r * a_stride + k];
      left[r] += x * b_left;
      right[r] += x * b_right;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    *reinterpret_cast<V*>(c + r * c_stride) = left[r];
    *reinterpret_cast<V*>(c + r * c_stride + lanes) = right[r];
  }
}

template <int rows>
__attribute__((target("avx512f"))) void tile_avx512(const float* a, std::int64_t a_stride, const float* b,
                                                    float* c, std::int64_t c_stride, std::int64_t depth) {
  multiply_tile<16, rows>(a, a_stride, b, c, c_stride, depth);
}

template <int rows>
__attribute__((target("avx2,fma"))) void tile_avx2(const float* a, std::int64_t a_stride, const float* b,
                                                   float* c, std::int64_t c_stride, std::int64_t depth) {
  multiply_tile<8, rows>(a, a_stride, b, c, c_stride, depth);
}

template <int rows>
void tile_sse2(const float* a, std::int64_t a_stride, const float* b, float* c, std::int64_t c_stride,
               std::int64_t depth) {
  multiply_tile<4, rows>(a, a_stride, b, c, c_stride, depth);
}

template <std::size_t... i>
Tiles avx512_tiles(std::index_sequence<i...> rows) {
  return {"avx512",
          32,
          static_cast<std::int64_t>(rows.size()),
          {nullptr, tile_avx512<static_cast<int>(i) + 1>...}};
}
template <std::size_t... i>
Tiles avx2_tiles(std::index_sequence<i...> rows) {
  return {
      "avx2", 16, static_cast<std::int64_t>(rows.size()), {nullptr, tile_avx2<static_cast<int>(i) + 1>...}};
}
template <std::size_t... i>
Tiles sse2_tiles(std::index_sequence<i...> rows) {
  return {
      "sse2", 8, static_cast<std::int64_t>(rows.size()), {nullptr, tile_sse2<static_cast<int>(i) + 1>...}};
}

std::vector<Tiles> list_tiles() {
  std::vector<Tiles> list;
  if (__builtin_cpu_supports("avx512f") != 0)
    list.push_back(avx512_tiles(std::make_index_sequence<most_tile_rows>()));
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0)
    list.push_back(avx2_tiles(std::make_index_sequence<6>()));
  list.push_back(sse2_tiles(std::make_index_sequence<6>()));
  return list;
}

/// All rows of a by the columns of one panel.
void multiply_panel(const Tiles& tiles, const float* a, std::int64_t a_stride, const float* panel, float* c,
                    std::int64_t c_stride, std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  std::array<float, most_tile_rows * most_panel_columns> part{};
  for (std::int64_t row = 0; row < rows; row += tiles.rows) {
    const std::int64_t count = std::min(tiles.rows, rows - row);
    const Tile tile = tiles.of[static_cast<std::size_t>(count)];
    const float* from = a + row * a_stride;
    float* to = c + row * c_stride;
    if (columns == tiles.panel) {
      tile(from, a_stride, panel, to, c_stride, depth);
      continue;
    }
    for (std::int64_t r = 0; r < count; ++r)
      std::copy_n(to + r * c_stride, columns, part.data() + r * tiles.panel);
    tile(from, a_stride, panel, part.data(), tiles.panel, depth);
    for (std::int64_t r = 0; r < count; ++r)
      std::copy_n(part.data() + r * tiles.panel, columns, to + r * c_stride);
  }
}

}  // namespace

const std::vector<Tiles>& usable_tiles() {
  static const std::vector<Tiles> list = list_tiles();
  return list;
}

void multiply_panels(const Tiles& tiles, const float* a, std::int64_t a_stride, const float* panels, float* c,
                     std::int64_t c_stride, std::int64_t rows, std::int64_t depth, std::int64_t columns) {
  const std::int64_t block = ceil_div(depth, std::max<std::int64_t>(ceil_div(depth, depth_block), 1));
  for (std::int64_t k = 0; k < depth; k += block) {
    const std::int64_t steps = std::min(block, depth - k);
    for (std::int64_t first = 0; first < columns; first += tiles.panel)
      multiply_panel(tiles, a + k, a_stride, panels + first * depth + k * tiles.panel, c + first, c_stride,
                     rows, steps, std::min(tiles.panel, columns - first));
  }
}

}  // namespace sylvite::quick
