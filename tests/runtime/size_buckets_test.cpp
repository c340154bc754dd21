#include "runtime/size_buckets.h"

#include <gtest/gtest.h>

namespace sylvite::size_buckets_test {
namespace {

constexpr std::int64_t large = 1 << 20;

/// Is a value of `each` bytes for every one of the product of the sizes a large one?
bool is_large(const Sizes& sizes, std::int64_t each) {
  std::int64_t bytes = each;
  for (const std::int64_t size : sizes) bytes *= size;
  return bytes > large_bytes_at(sizes, large);
}

TEST(SizeBuckets, ValuesAreLargeAtAllProductsBetweenTwoPowersOfTwo) {
  for (const std::int64_t each : {200, 300, 400, 600})
    for (const Sizes& sizes : {Sizes{2, 1030}, {1, 2500}, {4, 1023}, {63, 65}})
      EXPECT_EQ(is_large(sizes, each), is_large({1, 2048}, each)) << each << " bytes at " << sizes[1];
  EXPECT_FALSE(is_large({1, 2047}, 512));
  EXPECT_TRUE(is_large({1, 2048}, 512));
}

TEST(SizeBuckets, FixedSizesKeepTheirBytes) {
  EXPECT_EQ(large_bytes_at({}, large), large);
  EXPECT_EQ(large_bytes_at({4, 0}, large), large) << "a state of no length yet";
  EXPECT_EQ(large_bytes_at({3, 5}, 0), 0) << "nothing is large";
}

TEST(SizeBuckets, SizesOfLikeProductsDifferInAll) {
  ModelSizes model;
  model.symbols = {{"batch", {1, 4, {1}}}, {"height", {64, 288, {128}, 32}}, {"width", {64, 288, {160}, 32}}};
  const std::optional<Sizes> found = sizes_with_like_product(model, {4, 160, 288});
  ASSERT_TRUE(found);
  const Sizes& sizes = *found;
  EXPECT_NE(sizes[0], 4);
  EXPECT_NE(sizes[1], 160);
  EXPECT_NE(sizes[2], 288);
  EXPECT_NE(sizes[1], sizes[2]);
  for (std::size_t i = 0; i < sizes.size(); ++i) EXPECT_TRUE(model.symbols[i].range.contains(sizes[i]));
  const std::int64_t product = sizes[0] * sizes[1] * sizes[2];
  EXPECT_GE(product, 131072);
  EXPECT_LT(product, 262144);
}

TEST(SizeBuckets, ASizeOfOneValueStays) {
  ModelSizes model;
  model.symbols = {{"batch", {1, 1, {1}}}, {"width", {64, 288, {128}, 32}}};
  const std::optional<Sizes> found = sizes_with_like_product(model, {1, 128});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->front(), 1);
  EXPECT_NE(found->back(), 128);
  model.symbols[1].range = {64, 64, {64}};
  EXPECT_FALSE(sizes_with_like_product(model, {1, 64}));
}

}  // namespace
}  // namespace sylvite::size_buckets_test
