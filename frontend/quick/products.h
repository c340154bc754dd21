#pragma once
// Products of matrices: columns of the right operand are packed into panels, a tile of them at a time, and multiplied from there.

#include <algorithm>
#include <cstdint>
#include <memory>

#include "base/rounding.h"
#include "frontend/quick/functions.h"
#include "frontend/quick/patches.h"
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

/// How products are shared out: each task packs a tile of columns, slab by slab of the depth, and multiplies some rows by them.
struct Parts {
  std::int64_t columns = 0;
  std::int64_t rows = 0;
  std::int64_t depth = 0;  ///< of a slab
};

inline Parts parts_of(const Shape& shape, const Tiles& tiles, int threads) {
  constexpr std::int64_t packed_floats = 1 << 16;  // what a second cache holds beside the left operand
  constexpr std::int64_t wide = 256;  // columns that share what is read of the left operand, at least
  Parts parts;
  const std::int64_t all_columns = round_up(shape.columns, tiles.panel);
  const std::int64_t most_depth = packed_floats / std::min(wide, all_columns);
  parts.depth = ceil_div(shape.depth, std::max<std::int64_t>(ceil_div(shape.depth, most_depth), 1));
  const std::int64_t fitting =
      packed_floats / std::max<std::int64_t>(parts.depth, 1) / tiles.panel * tiles.panel;
  parts.columns = std::min(std::max(fitting, tiles.panel), all_columns);
  const std::int64_t tasks = shape.batches * ceil_div(shape.columns, parts.columns);
  const std::int64_t chunks =
      std::max<std::int64_t>(1, std::int64_t{2} * threads / std::max<std::int64_t>(tasks, 1));
  parts.rows = round_up(ceil_div(shape.rows, chunks), tiles.rows);
  return parts;
}

/// c[batch] += a[batch] b[batch], all rows dense; pack(batch, depth, columns, panels) packs these rows and columns of b[batch].
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
    const auto panels = std::make_unique_for_overwrite<float[]>(
        static_cast<std::size_t>(round_up(columns.count, tiles.panel) * parts.depth));
    const std::int64_t whole = columns.count / tiles.panel * tiles.panel;
    for (std::int64_t k = 0; k < shape.depth; k += parts.depth) {
      const Part depth = {k, std::min(parts.depth, shape.depth - k)};
      // Numbers that are left there may be denormal, which are slow to multiply.
      if (whole < columns.count)
        std::fill_n(panels.get() + whole * depth.count, depth.count * tiles.panel, 0.0F);
      pack(batch, depth, columns, panels.get());
      multiply_panels(tiles, a(batch) + row * shape.depth + k, shape.depth, panels.get(),
                      c(batch) + row * shape.columns + column, shape.columns,
                      std::min(parts.rows, shape.rows - row), depth.count, columns.count);
    }
  });
}

/// Panels of `count` columns, whose row k lies at row_of(k).
template <typename RowOf>
void pack_rows(std::int64_t depth, std::int64_t count, float* panels, const RowOf& row_of) {
  const std::int64_t panel = usable_tiles().front().panel;
  for (std::int64_t k = 0; k < depth; ++k) {
    const float* row = row_of(k);
    for (std::int64_t first = 0; first < count; first += panel)
      copy_row(row + first, std::min(panel, count - first), panels + first * depth + k * panel);
  }
}

}  // namespace sylvite::quick
