#pragma once
// Operands that repeat along dims of the result, row by row.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/rounding.h"
#include "frontend/quick/request.h"
#include "frontend/quick/share.h"

namespace sylvite::quick {

/// How operands lie in the result: its dims, of which neighbours that all operands walk alike are one, and the operands'
/// strides, 0 where they repeat. Along the last dim they are 0 or 1.
struct Rows {
  Dims dims;
  std::vector<Dims> strides;

  [[nodiscard]] std::int64_t length() const { return dims.back(); }
};

/// Of an operand in the result.
inline Dims strides_in(const Dims& dims, const Dims& result) {
  const Dims own = dense_strides(dims);
  const std::size_t lead = result.size() - dims.size();
  Dims strides(result.size(), 0);
  for (std::size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != 1) strides[lead + i] = own[i];
  return strides;
}

inline Rows rows_of(const Dims& result, InputTensors operands) {
  std::vector<Dims> strides;
  for (const Tensor* operand : operands) strides.push_back(strides_in(operand->dims(), result));
  Rows rows{{1}, std::vector<Dims>(strides.size(), Dims{0})};
  bool is_first = true;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 1) continue;
    bool joins = true;
    for (std::size_t each = 0; each < strides.size(); ++each)
      joins = joins && rows.strides[each].back() == strides[each][i] * result[i];
    if (!joins && !is_first) rows.dims.push_back(1);
    rows.dims.back() *= result[i];
    for (std::size_t each = 0; each < strides.size(); ++each) {
      if (!joins && !is_first) rows.strides[each].push_back(0);
      rows.strides[each].back() = strides[each][i];
    }
    is_first = false;
  }
  return rows;
}

using Offsets = std::array<std::int64_t, 3>;

/// Calls body(to, offsets, count) for parts of rows: elements [to, to + count) of the result, and where the operands'
/// begin.
template <typename Body>
void for_rows(const Rows& rows, double steps, int threads, const Body& body) {
  constexpr std::int64_t part = 1 << 14;
  const std::int64_t length = rows.length();
  const std::int64_t count = checked_product(rows.dims, "rows") / length;
  const std::int64_t parts = ceil_div(length, part);
  const std::int64_t together = std::max<std::int64_t>(1, part / length);
  const auto one_row = [&](std::int64_t row, std::int64_t first, std::int64_t last) {
    Offsets offsets{};
    for (std::size_t each = 0; each < rows.strides.size(); ++each) {
      const Dims& strides = rows.strides[each];
      std::int64_t rest = row;
      offsets[each] = first * strides.back();
      for (std::size_t i = rows.dims.size() - 1; i-- > 0; rest /= rows.dims[i])
        offsets[each] += rest % rows.dims[i] * strides[i];
    }
    body(row * length + first, offsets, last - first);
  };
  const std::int64_t groups = ceil_div(count, together);
  share_out(groups * parts, static_cast<double>(count * length) * steps, threads, [&](std::int64_t task) {
    const std::int64_t first = task % parts * part;
    const std::int64_t begin = task / parts * together;
    for (std::int64_t row = begin; row < std::min(count, begin + together); ++row)
      one_row(row, first, std::min(length, first + part));
  });
}

inline bool moves(const Rows& rows, std::size_t operand) {
  return rows.strides[operand].back() != 0;
}

}  // namespace sylvite::quick
