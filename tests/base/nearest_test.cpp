#include "base/nearest.h"

#include <gtest/gtest.h>

namespace sylvite::nearest_test {
namespace {

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ab", "ba"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
}

TEST(Nearest, SuggestsOnlyWhatIsNear) {
  constexpr std::string_view known[] = {"compile", "run", "bench", "tune"};
  EXPECT_EQ(nearest_name("complie", known), "compile");
  EXPECT_EQ(nearest_name("tuen", known), "tune");
  EXPECT_EQ(nearest_name("abracadabra", known), "");
  EXPECT_EQ(suggestion("benhc", known), "; did you mean bench?");
}

}  // namespace
}  // namespace sylvite::nearest_test
