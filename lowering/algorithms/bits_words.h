#pragma once
// Words of packed weights of a few bits: bytes of a column that lie together, so that an instruction takes them at once.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "lowering/algorithms/problems.h"

namespace sylvite {

inline constexpr std::int64_t word_bytes = 4;

/// Numbers of a word.
[[nodiscard]] inline std::int64_t word_numbers(const BitsProblem& problem) {
  return word_bytes * problem.per_byte();
}
/// Words of a block.
[[nodiscard]] inline std::int64_t block_words(const BitsProblem& problem) {
  return problem.block / word_numbers(problem);
}
/// How many words can be multiplied by steps of 8 bits and added up in i16, two bytes at once: a power of two, at most a
/// block; 0 where the products of a word have no room.
[[nodiscard]] inline std::int64_t pair_words(const BitsProblem& problem) {
  constexpr std::int64_t most_step = 128;
  const std::int64_t most_number = (std::int64_t{1} << problem.bits) - 1;
  const std::int64_t room = std::numeric_limits<std::int16_t>::max();
  const std::int64_t words = room / (2 * problem.per_byte() * most_number * most_step);
  return std::min(static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(words))),
                  block_words(problem));
}

}  // namespace sylvite
