#include "runtime/memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace sylvite::memory_test {
namespace {

/// Counts what lives.
class Counted {
 public:
  explicit Counted(std::size_t bytes) : bytes_(bytes, std::byte{0}) { ++blocks; }
  ~Counted() { --blocks; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  [[nodiscard]] std::byte* data() { return bytes_.data(); }

  static int blocks;

 private:
  std::vector<std::byte> bytes_;
};
int Counted::blocks = 0;

TEST(BlockPools, SizesThatAreCloseShareBlocks) {
  BlockPools<Counted> pools;
  const void* first = pools.take(1'000'000).get();
  EXPECT_EQ(pools.take(1'010'000).get(), first);
  EXPECT_NE(pools.take(2'000'000).get(), first);
  EXPECT_EQ(Counted::blocks, 2);
}

TEST(BlockPools, BlocksInUseAreNobodyElses) {
  BlockPools<Counted> pools;
  const std::shared_ptr<void> one = pools.take(100);
  const std::shared_ptr<void> other = pools.take(100);
  EXPECT_NE(one, other);
  EXPECT_NE(pools.take(0), nullptr);
}

TEST(BlockPools, ManySizesKeepAFewTimesTheLargest) {
  {
    BlockPools<Counted> pools;
    for (std::size_t bytes = 1; bytes < 100'000; bytes += 7) (void)pools.take(bytes);
    EXPECT_LE(Counted::blocks, 60) << "of 14,000 sizes";
  }
  EXPECT_EQ(Counted::blocks, 0);
}

}  // namespace
}  // namespace sylvite::memory_test
