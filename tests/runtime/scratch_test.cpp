#include "runtime/scratch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

namespace sylvite::scratch_test {
namespace {

constexpr std::size_t megabyte = std::size_t{1} << 20;

TEST(Scratch, IsAlignedAndCanBeWritten) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{1000}, megabyte, 3 * megabyte + 1}) {
    void* memory = take_scratch(nullptr, bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 128, 0U);
    std::memset(memory, 1, bytes);
    give_scratch(nullptr, memory);
  }
  give_scratch(nullptr, nullptr);
}

TEST(Scratch, KeepsALargeBlockForSmallerOnesAndForNoOtherUser) {
  void* first = take_scratch(nullptr, 40 * megabyte);
  give_scratch(nullptr, first);
  const std::size_t kept = kept_scratch_bytes();
  EXPECT_GE(kept, 40 * megabyte);
  void* again = take_scratch(nullptr, 20 * megabyte);
  EXPECT_EQ(again, first);
  void* beside = take_scratch(nullptr, 20 * megabyte);
  EXPECT_NE(beside, again);
  give_scratch(nullptr, again);
  give_scratch(nullptr, beside);
}

TEST(Scratch, KeepsManyBlocksOfMiddleSize) {
  std::vector<void*> blocks(10);
  for (void*& block : blocks) block = take_scratch(nullptr, megabyte / 2);
  for (void* block : blocks) give_scratch(nullptr, block);
  EXPECT_GE(kept_scratch_bytes(), 5 * megabyte);
}

TEST(Scratch, DropsBlocksThatALargerOneReplaces) {
  give_scratch(nullptr, take_scratch(nullptr, 50 * megabyte));
  give_scratch(nullptr, take_scratch(nullptr, 90 * megabyte));
  EXPECT_LT(kept_scratch_bytes(), 91 * megabyte);
}

TEST(Scratch, RefusesWhatNoMachineHas) {
  EXPECT_EQ(take_scratch(nullptr, std::numeric_limits<std::size_t>::max()), nullptr);
  EXPECT_EQ(take_scratch(nullptr, std::size_t{1} << 60), nullptr);
}

TEST(Scratch, IsForManyThreads) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 1; i < 200; ++i) {
        const std::size_t bytes = megabyte / 2 * static_cast<std::size_t>(i % 5 + 1);
        auto* memory = static_cast<std::uint8_t*>(take_scratch(nullptr, bytes));
        memory[0] = memory[bytes - 1] = static_cast<std::uint8_t>(t);
        ASSERT_EQ(memory[0] + memory[bytes - 1], 2 * t);
        give_scratch(nullptr, memory);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace sylvite::scratch_test
