#include "autotune/standing.h"

#include <gtest/gtest.h>

namespace sylvite::standing_test {
namespace {

Candidate candidate(std::int64_t tile) {
  Candidate made;
  made.form.parameters = {{"tile", tile}};
  return made;
}

Trial trial(std::int64_t tile, double us, Verdict verdict = Verdict::ok) {
  return {"kernel", candidate(tile), verdict, {us, us, us}, us, 0, "", 0};
}

TEST(Standing, NothingWasTried) {
  const Standing standing = standing_of(candidate(1), 0, candidate(1), {}, {});
  EXPECT_EQ(standing.tried, 0);
  EXPECT_EQ(standing.next_ratio, 0);
  EXPECT_EQ(standing.default_ratio, 1);
  EXPECT_EQ(describe(standing), "");
}

TEST(Standing, TrialsTellOfTheNextAndTheDefault) {
  const Standing standing =
      standing_of(candidate(1), 0, candidate(3),
                  {trial(1, 100), trial(2, 102), trial(3, 150), trial(4, 0, Verdict::run_crash)}, {});
  EXPECT_EQ(standing.tried, 4);
  EXPECT_EQ(standing.failed, 1);
  EXPECT_DOUBLE_EQ(standing.next_ratio, 1.02);
  EXPECT_DOUBLE_EQ(standing.default_ratio, 1.5);
  EXPECT_EQ(
      describe(standing),
      "3 others were tried, 1 failed; the next takes 1.020 of its time; the default schedule takes 1.500");
}

TEST(Standing, RacesCountBeforeTrialsAndThoseInAModelFirst) {
  const std::vector<Trial> trials = {trial(1, 100), trial(2, 90), trial(3, 150)};
  std::vector<Race> races = {{candidate(3), candidate(2), {130, 130}, {110, 110}, "won"},  // of two others
                             {candidate(3), candidate(1), {140, 140}, {100, 100}, "won"},
                             {candidate(1), candidate(2), {100, 100}, {105, 105}, "lost"}};
  Standing standing = standing_of(candidate(1), 0, candidate(3), trials, races);
  EXPECT_DOUBLE_EQ(standing.next_ratio, 1.05);
  EXPECT_DOUBLE_EQ(standing.default_ratio, 1.4);
  races.push_back({candidate(3), candidate(1), {120, 120}, {100, 100}, "won", RaceScope::model});
  races.push_back({candidate(3), candidate(1), {160, 160}, {100, 100}, "won"});
  standing = standing_of(candidate(1), 0, candidate(3), trials, races);
  EXPECT_DOUBLE_EQ(standing.default_ratio, 1.2);
}

TEST(Standing, TheTimeOfChoosingCountsWhereItIsLess) {
  const std::vector<Trial> trials = {trial(1, 200), trial(2, 110)};
  EXPECT_DOUBLE_EQ(standing_of(candidate(1), 100, candidate(1), trials, {}).next_ratio, 1.1);
  EXPECT_DOUBLE_EQ(standing_of(candidate(1), 300, candidate(1), trials, {}).next_ratio, 0.55);
}

TEST(Standing, OfAChosenOneWithoutATimeNothingIsKnown) {
  const Standing standing = standing_of(candidate(9), 0, candidate(1), {trial(1, 100), trial(2, 90)}, {});
  EXPECT_EQ(standing.next_ratio, 0);
  EXPECT_EQ(standing.default_ratio, 0);
}

}  // namespace
}  // namespace sylvite::standing_test
