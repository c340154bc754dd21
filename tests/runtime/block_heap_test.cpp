#include "runtime/block_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "base/sanitizer.h"

namespace sylvite::block_heap_test {
namespace {

/// Counts what lives.
class Counted {
 public:
  explicit Counted(std::size_t bytes) : bytes_(bytes, std::byte{0}) { ++blocks, ++made; }
  ~Counted() { --blocks; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  [[nodiscard]] std::byte* data() { return bytes_.data(); }

  static int blocks, made;

 private:
  std::vector<std::byte> bytes_;
};
int Counted::blocks = 0;
int Counted::made = 0;

using Heap = BlockHeap<Counted>;

TEST(BlockHeap, BlocksInUseDoNotOverlap) {
  Heap heap;
  std::mt19937 random(1);
  std::vector<std::pair<std::shared_ptr<void>, std::size_t>> taken;
  for (int i = 0; i < 3'000; ++i) {
    if (taken.size() > 40) taken.erase(taken.begin() + random() % 41);
    const std::size_t bytes = random() % (i % 7 == 0 ? 100'000 : 900);
    taken.emplace_back(heap.take(bytes), bytes);
    auto* begin = static_cast<std::byte*>(taken.back().first.get());
    for (std::size_t other = 0; other + 1 < taken.size(); ++other) {
      auto* at = static_cast<std::byte*>(taken[other].first.get());
      ASSERT_TRUE(at + taken[other].second <= begin || begin + bytes <= at) << "block " << i;
    }
    std::fill_n(begin, bytes, std::byte{1});
  }
}

TEST(BlockHeapDeathTest, AddressSanitizerSeesWhoReadsWhatIsFree) {
  if (!has_address_sanitizer) GTEST_SKIP() << "no AddressSanitizer";
  Heap heap;
  const std::shared_ptr<void> used = heap.take(100);
  const auto* gone = static_cast<const volatile char*>(heap.take(100).get());
  EXPECT_DEATH((void)*gone, "use-after-poison");
  EXPECT_EQ(*static_cast<const char*>(heap.take(100).get()), 0);
}

TEST(BlockHeap, WhatIsHeldIsAboutWhatIsInUseAtOnce) {
  {
    Heap heap;
    std::mt19937 random(2);
    for (int run = 0; run < 300; ++run) {
      const std::size_t scale = 1 + random() % 1'000;
      std::vector<std::shared_ptr<void>> results;
      for (std::size_t i = 1; i <= 40; ++i) results.push_back(heap.take(i * i % 17 * scale));
    }
    constexpr std::size_t most = 40 * 8 * 1'000;
    EXPECT_LE(heap.held_bytes(), 3 * most);
    EXPECT_LE(Counted::blocks, 12) << "of 300 sizes";
  }
  EXPECT_EQ(Counted::blocks, 0);
}

TEST(BlockHeap, SizesThatTakeTurnsMakeNothingNew) {
  Heap heap;
  const auto run = [&heap](std::size_t scale) {
    std::vector<std::shared_ptr<void>> results;
    for (const std::size_t part : {7, 1, 30, 2, 2, 11}) results.push_back(heap.take(part * scale));
  };
  for (const std::size_t scale : {100, 1'000, 300, 1'000}) run(scale);
  const int made = Counted::made;
  for (int turn = 0; turn < 50; ++turn)
    for (const std::size_t scale : {100, 1'000, 300}) run(scale);
  EXPECT_EQ(Counted::made, made);
}

TEST(BlockHeap, FreeNeighboursBecomeOneBlock) {
  Heap heap;
  const void* begin = heap.take(4'096).get();
  std::vector<std::shared_ptr<void>> parts;
  for (int i = 0; i < 4; ++i) parts.push_back(heap.take(1'024));
  for (const int part : {1, 3, 0, 2}) parts[static_cast<std::size_t>(part)].reset();
  EXPECT_EQ(heap.take(4'096).get(), begin);
  EXPECT_EQ(Counted::blocks, 1);
}

TEST(BlockHeap, TrimKeepsWhatIsInUse) {
  Heap heap;
  const std::shared_ptr<void> one = heap.take(5'000);
  (void)heap.take(100'000);
  EXPECT_EQ(Counted::blocks, 2);
  heap.trim();
  EXPECT_EQ(Counted::blocks, 1);
  EXPECT_LE(heap.held_bytes(), 8'192);
  EXPECT_NE(heap.take(100'000).get(), one.get());
}

TEST(BlockHeap, BlocksOutliveTheHeap) {
  std::shared_ptr<void> block;
  {
    Heap heap;
    block = heap.take(0);
    EXPECT_NE(block, nullptr);
  }
  EXPECT_EQ(Counted::blocks, 1);
  block.reset();
  EXPECT_EQ(Counted::blocks, 0);
}

}  // namespace
}  // namespace sylvite::block_heap_test
