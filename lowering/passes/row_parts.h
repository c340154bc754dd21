#pragma once
// A block of threads folds a row. A few rows that are long leave most of a GPU idle: parts of them are folded first.

#include <cstdint>
#include <optional>

namespace sylvite {

inline constexpr std::int64_t least_row_parts = 16;      ///< of a row, else it is no use
inline constexpr std::int64_t most_row_parts = 1 << 12;  ///< of all rows

/// `count` equal parts of `length` elements, and `rest` elements behind them.
struct RowParts {
  std::int64_t count = 1, length = 1, rest = 0;
};

/// Are there so few rows, and are they so long?
[[nodiscard]] bool are_few_and_long(std::int64_t rows, std::int64_t length);
/// The parts of each of few long rows; nothing is left behind them where the length has a divisor that serves.
[[nodiscard]] RowParts parts_of_rows(std::int64_t rows, std::int64_t length);

}  // namespace sylvite
