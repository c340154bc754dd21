#pragma once
// Philox 4x32-10, a counter-based random number generator: the words of a block are a function of a counter and a key
// alone, so that draws can be made in any order, and made again (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as
// easy as 1, 2, 3; SC11).

#include <array>
#include <cstdint>

namespace sylvite {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

inline constexpr int philox_rounds = 10;
/// Of words 0 and 2 of the counter.
inline constexpr std::array<std::uint32_t, 2> philox_factors = {0xD2511F53, 0xCD9E8D57};
/// What is added to each word of the key after a round.
inline constexpr PhiloxKey philox_steps = {0x9E3779B9, 0xBB67AE85};

/// The low word, then the high one.
[[nodiscard]] constexpr PhiloxKey philox_words(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  return {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32)};
}

[[nodiscard]] constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < philox_rounds; ++round) {
    const std::uint64_t first = std::uint64_t{philox_factors[0]} * counter[0];
    const std::uint64_t second = std::uint64_t{philox_factors[1]} * counter[2];
    counter = {
        static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
        static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    for (std::size_t i = 0; i < key.size(); ++i) key[i] += philox_steps[i];
  }
  return counter;
}

}  // namespace sylvite
