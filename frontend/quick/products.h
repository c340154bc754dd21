#pragma once
// Products of matrices: columns of the right operand are packed into panels, a tile of them at a time, and multiplied from there.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/rounding.h"
#include "frontend/quick/share.h"
#include "frontend/quick/tile.h"

namespace sylvite::quick {

/// Products of one shape.
struct Shape {
  std::int64_t batches = 1;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;

  [[nodiscard]] double work() const {
    return static_cast<double>(batches) * static_cast<double>(rows) * static_cast<double>(depth) *
           static_cast<double>(columns);
  }
};

/// How products are shared out: each task packs its tile of columns, and multiplies some rows by it.
struct Parts {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
};

inline Parts parts_of(const Shape& shape, const Tiles& tiles, int threads) {
  constexpr std::int64_t packed_floats = 1 << 16;  // what a second cache holds beside the left operand
  Parts parts;
  const std::int64_t fitting =
      packed_floats / std::max<std::int64_t>(shape.depth, 1) / tiles.panel * tiles.panel;
  parts.columns = std::min(std::max(fitting, tiles.panel), round_up(shape.columns, tiles.panel));
  const std::int64_t tasks = shape.batches * ceil_div(shape.columns, parts.columns);
  const std::int64_t chunks =
      std::max<std::int64_t>(1, std::int64_t{2} * threads / std::max<std::int64_t>(tasks, 1));
  parts.rows = round_up(ceil_div(shape.rows, chunks), tiles.rows);
  return parts;
}

/// Rows [first, first + count) of something.
struct Part {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// c[batch] += a[batch] b[batch], all rows dense; pack(batch, columns, panels) packs these columns of b[batch].
template <typename Left, typename Result, typename Pack>
void multiply_batches(const Shape& shape, int threads, const Left& a, const Result& c, const Pack& pack) {
  const Tiles& tiles = usable_tiles().front();
  const Parts parts = parts_of(shape, tiles, threads);
  const std::int64_t column_parts = ceil_div(shape.columns, parts.columns);
  const std::int64_t row_parts = ceil_div(shape.rows, parts.rows);
  share_out(shape.batches * column_parts * row_parts, shape.work(), threads, [&](std::int64_t task) {
    const std::int64_t batch = task / (column_parts * row_parts);
    const std::int64_t row = task % row_parts * parts.rows;
    const std::int64_t column = task / row_parts % column_parts * parts.columns;
    const Part columns = {column, std::min(parts.columns, shape.columns - column)};
    std::vector<float> panels(static_cast<std::size_t>(round_up(columns.count, tiles.panel) * shape.depth));
    pack(batch, columns, panels.data());
    multiply_panels(tiles, a(batch) + row * shape.depth, shape.depth, panels.data(),
                    c(batch) + row * shape.columns + column, shape.columns,
                    std::min(parts.rows, shape.rows - row), shape.depth, columns.count);
  });
}

/// Panels of `count` columns, whose row k lies at row_of(k).
template <typename RowOf>
void pack_rows(std::int64_t depth, std::int64_t count, float* panels, const RowOf& row_of) {
  const std::int64_t panel = usable_tiles().front().panel;
  for (std::int64_t k = 0; k < depth; ++k) {
    const float* row = row_of(k);
    for (std::int64_t first = 0; first < count; first += panel)
      std::memcpy(panels + first * depth + k * panel, row + first,
                  static_cast<std::size_t>(std::min(panel, count - first)) * sizeof(float));
  }
}

}  // namespace sylvite::quick
