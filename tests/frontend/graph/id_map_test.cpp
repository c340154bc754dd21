#include "sylvite/id_map.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "sylvite/graph.h"

namespace sylvite::id_map_test {
namespace {

TEST(IdMap, HoldsOneForEachId) {
  IdMap<int> map(3, 7);
  map[2] = 1;
  EXPECT_EQ(std::vector<int>(map.begin(), map.end()), (std::vector<int>{7, 7, 1}));
  IdMap<bool> marks(2);
  marks[1] = true;
  EXPECT_FALSE(marks[0]);
  EXPECT_TRUE(marks[1]);
}

TEST(IdMap, RefusesIdsThatAreNone) {
  IdMap<int> map(3);
  EXPECT_THROW((void)map[no_value], std::out_of_range);
  EXPECT_THROW((void)map[3], std::out_of_range);
}

}  // namespace
}  // namespace sylvite::id_map_test
