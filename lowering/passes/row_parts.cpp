#include "lowering/passes/row_parts.h"

namespace sylvite {
namespace {

constexpr std::int64_t least_row = 1 << 16, most_parts = 512, many_parts = 64;
constexpr std::int64_t vector = 8;  // elements that a thread reads at once, at most

}  // namespace

bool are_few_and_long(std::int64_t rows, std::int64_t length) {
  return length >= least_row && rows >= 1 && rows * least_row_parts <= most_row_parts / 2;
}

RowParts parts_of_rows(std::int64_t rows, std::int64_t length) {
  const auto serves = [&](std::int64_t count) {
    return length % count == 0 && rows * count <= most_row_parts;
  };
  for (std::int64_t count = most_parts; count >= many_parts; count /= 2)
    if (serves(count)) return {count, length / count};
  for (std::int64_t count = most_parts; count >= least_row_parts; --count)
    if (serves(count)) return {count, length / count};
  std::int64_t count = most_parts;
  while (rows * count > most_row_parts) count /= 2;
  const std::int64_t part = length / count / vector * vector;
  return {count, part, length - count * part};
}

}  // namespace sylvite
