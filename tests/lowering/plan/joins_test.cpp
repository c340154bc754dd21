#include "lowering/plan/joins.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "sylvite/graph_text.h"

namespace sylvite::joins_test {
namespace {

/// Two values that are computed side by side, and what reads their concat.
Graph two_parts(const std::string& part, const std::string& whole, int axis) {
  return parse_graph(
      fmt::format("graph g(%x: {0}, %y: {0}) {{\n  %a: {0} = neg(%x)\n  %b: {0} = neg(%y)\n"
                  "  %c: {1} = concat(%a, %b) {{axis={2}}}\n  %d: {1} = relu(%c)\n  return %d\n}}\n",
                  part, whole, axis));
}

bool is_joined(const std::string& part, const std::string& whole, int axis) {
  return !find_joins(two_parts(part, whole, axis)).empty();
}

TEST(Joins, ChannelsOfAnyNumberOfImagesInBlocks) {
  EXPECT_TRUE(is_joined("f32[1,16,5,6]@c16", "f32[1,32,5,6]@c16", 1));
  EXPECT_TRUE(is_joined("f32[3,16,5,6]@c16", "f32[3,32,5,6]@c16", 1));
  const Joins joins = find_joins(two_parts("f32[3,16,5,6]@c16", "f32[3,32,5,6]@c16", 1));
  std::set<std::int64_t> offsets;
  for (const auto& [id, part] : joins.parts) offsets.insert(part.offset);
  EXPECT_EQ(offsets, (std::set<std::int64_t>{0, std::int64_t{4} * 3 * 16 * 5 * 6}));
}

TEST(Joins, NotWhatLiesApart) {
  EXPECT_FALSE(is_joined("f32[3,16,5,6]", "f32[3,32,5,6]", 1)) << "planes of an image follow each other";
  EXPECT_FALSE(is_joined("f32[3,16,1,1]@c16", "f32[3,32,1,1]@c16", 1)) << "channels of a pixel do";
  EXPECT_FALSE(is_joined("f32[3,32,5,6]@c16", "f32[6,32,5,6]@c16", 0)) << "images of a block do";
  EXPECT_TRUE(is_joined("f32[3,16,5,6]@c16", "f32[6,16,5,6]@c16", 0)) << "one block";
  EXPECT_FALSE(is_joined("f32[3,32,5,6]@c16", "f32[3,32,10,6]@c16", 2));
}

}  // namespace
}  // namespace sylvite::joins_test
