#include "base/words.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace sylvite::words_test {
namespace {

TEST(Words, LinesAreTakenUntilNoneIsLeft) {
  std::string_view text = "first\n\nlast";
  EXPECT_EQ(take_line(text), "first");
  EXPECT_EQ(take_line(text), "");
  EXPECT_EQ(take_line(text), "last");
  EXPECT_EQ(text, "");
  EXPECT_EQ(take_line(text), "");
}

TEST(Split, TrimsAndLeavesOutWhatIsEmpty) {
  EXPECT_THAT(split(" a , b,, c,", ','), testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(split("", ','), testing::IsEmpty());
}

TEST(Counted, TakesThePluralForAllButOne) {
  EXPECT_EQ(counted(0, "trial"), "0 trials");
  EXPECT_EQ(counted(1, "trial"), "1 trial");
  EXPECT_EQ(counted(2, "launch", "launches"), "2 launches");
  EXPECT_EQ(counted(1, "launch", "launches"), "1 launch");
}

TEST(SplitAssignment, TakesTheFirstEqualsSign) {
  EXPECT_EQ(split_assignment("x=a=b", "--set"), std::pair(std::string("x"), std::string("a=b")));
  EXPECT_EQ(split_assignment("x=", "--set").second, "");
  for (const char* bad : {"x", "=1", ""})
    EXPECT_THROW((void)split_assignment(bad, "--set"), UsageError) << bad;
}

}  // namespace
}  // namespace sylvite::words_test
