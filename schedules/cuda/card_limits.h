#pragma once
// What every card that is served has.

#include <cstdint>

namespace sylvite {

constexpr std::int64_t most_blocks_of_grid = (1LL << 31) - 1;
constexpr int most_registers = 255;  ///< of a thread
constexpr int registers_of_multiprocessor = 65536;
constexpr std::int64_t shared_without_leave = 46 << 10;  ///< bytes that a block may have without asking

}  // namespace sylvite
