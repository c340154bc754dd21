#include "lowering/plan/grouped_filter.h"

#include <gtest/gtest.h>

#include "lowering/plan/packing.h"

namespace sylvite::grouped_filter_test {
namespace {

Tensor counting(const Dims& dims) {
  Tensor tensor(DType::f32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, static_cast<double>(i + 1));
  return tensor;
}

/// What each output reads of each input channel: the same before and after, by the definitions.
void expect_spreads(std::int64_t groups, std::int64_t inputs, std::int64_t outputs, std::int64_t block) {
  const GroupedChannels channels{groups, inputs, outputs, block};
  const Tensor filter = counting({groups * outputs, inputs, 1, 2});
  const Tensor wide = spread_filter(filter, groups, block);
  const std::int64_t folded = channels.most_steps() * channels.step();
  ASSERT_EQ(wide.dims(), (Dims{groups * outputs, folded, 1, 2}));
  for (std::int64_t output = 0; output < groups * outputs; ++output) {
    const std::int64_t first = channels.first_step(output / block) * channels.step();
    const std::int64_t steps = channels.steps(output / block);
    for (std::int64_t i = 0; i < folded; ++i) {
      const std::int64_t own = first + i - output / outputs * inputs;  // the channel in the output's group
      const bool is_read = own >= 0 && own < inputs;
      EXPECT_TRUE(!is_read || i < steps * channels.step()) << "left out";
      for (std::int64_t tap = 0; tap < 2; ++tap) {
        const double expected = is_read ? filter.as_double((output * inputs + own) * 2 + tap) : 0;
        ASSERT_EQ(wide.as_double((output * folded + i) * 2 + tap), expected) << output << ", " << i;
      }
    }
  }
}

TEST(GroupedFilter, EveryOutputReadsItsGroup) {
  expect_spreads(8, 4, 4, 16);
  expect_spreads(3, 16, 16, 16);
  expect_spreads(4, 24, 24, 16);
  expect_spreads(5, 12, 20, 16);
  expect_spreads(3, 40, 10, 8);
  expect_spreads(7, 2, 3, 16);
}

TEST(GroupedFilter, BlocksOfOneGroupFoldNoZeros) {
  const GroupedChannels channels{3, 32, 48, 16};
  EXPECT_TRUE(channels.are_apart());
  EXPECT_EQ(channels.step() * channels.most_steps(), 32);
  EXPECT_EQ(channels.first_step(4), 2) << "the second block of the second group";
}

TEST(GroupedFilter, NarrowGroupsAreNotWorthBlocks) {
  EXPECT_TRUE(are_worth_blocks({32, 16, 16, 16}));
  EXPECT_TRUE(are_worth_blocks({4, 24, 24, 16}));
  EXPECT_TRUE(are_worth_blocks({2, 56, 56, 16}));
  EXPECT_FALSE(are_worth_blocks({32, 8, 8, 16}));
  EXPECT_TRUE(are_worth_blocks({32, 8, 8, 8}));
  EXPECT_FALSE(are_worth_blocks({8, 20, 20, 16}));
  EXPECT_FALSE(are_worth_blocks({64, 1, 1, 16}));
  EXPECT_FALSE(are_worth_blocks({4, 1, 1, 16}));
  EXPECT_TRUE(are_worth_blocks({4, 2, 16, 16})) << "more outputs than inputs";
}

TEST(GroupedFilter, IsPackedAsAFilterOfItsSpreadChannels) {
  const Tensor filter = counting({24, 12, 3, 1});
  Packing packing{{16, 4, 1, 1}, {0, 2, 4, 6, 3, 1}};
  const Tensor expected = pack(spread_filter(filter, 2, 16), packing);
  packing.filter_groups = 2;
  const Tensor packed = pack(filter, packing);
  ASSERT_EQ(packed.dims(), expected.dims());
  for (std::int64_t i = 0; i < packed.size(); ++i) ASSERT_EQ(packed.as_double(i), expected.as_double(i)) << i;
}

}  // namespace
}  // namespace sylvite::grouped_filter_test
