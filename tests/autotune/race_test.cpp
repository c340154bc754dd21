#include "autotune/race.h"

#include <gtest/gtest.h>

#include <random>

namespace sylvite::race_test {
namespace {

std::vector<double> noisy(double us, double relative, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> distribution(us, us * relative);
  std::vector<double> samples;
  samples.reserve(15);
  for (int i = 0; i < 15; ++i) samples.push_back(distribution(generator));
  return samples;
}

TEST(Race, AClearLeadWins) {
  EXPECT_EQ(decide_race({{noisy(100, 0.01, 1), 10}, {noisy(80, 0.01, 2), 10}, {noisy(90, 0.01, 3), 10}}), 1);
}

TEST(Race, NoiseRarelyUnseatsTheIncumbent) {
  int upsets = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    upsets +=
        decide_race({{noisy(100, 0.1, 3 * seed), 10}, {noisy(100, 0.1, 3 * seed + 1), 10}}) != 0 ? 1 : 0;
  }
  EXPECT_LE(upsets, 14);
}

TEST(Race, SlowingMachinesCancelOut) {
  std::vector<double> incumbent;
  std::vector<double> challenger;
  for (int i = 0; i < 15; ++i) {
    double throttle = 1 + 0.2 * i;  // both in the same minute
    incumbent.push_back(100 * throttle);
    challenger.push_back(95 * throttle);
  }
  RaceVerdict verdict = compare_samples(incumbent, challenger);
  EXPECT_NEAR(verdict.ratio, 0.95, 1e-9);
  EXPECT_TRUE(verdict.won());
  EXPECT_FALSE(verdict.lost());
}

TEST(Race, TwoRacesSayTheSmallerLead) {
  const RaceVerdict narrow{0.97, 0.01};
  EXPECT_TRUE(narrow.is_narrow());
  EXPECT_TRUE((RaceVerdict{1.03, 0.01}.is_narrow()));
  EXPECT_FALSE((RaceVerdict{0.95, 0.01}.is_narrow()));
  EXPECT_FALSE((RaceVerdict{1.06, 0.01}.is_narrow()));
  EXPECT_FALSE((RaceVerdict{0.97, 0.04}.is_narrow()));
  EXPECT_EQ(combine(narrow, {0.98, 0.005}).ratio, 0.98);
  EXPECT_TRUE(combine(narrow, {0.98, 0.005}).won());
  EXPECT_FALSE(combine(narrow, {0.97, 0.04}).won()) << "noise in one of them";
  EXPECT_EQ(combine(narrow, {1.02, 0.005}).ratio, 1) << "they disagree";
  EXPECT_EQ(combine({1.02, 0.005}, {1.03, 0.005}).ratio, 1.02);
  EXPECT_TRUE(combine({1.02, 0.005}, {1.03, 0.005}).lost());
}

TEST(Race, AmongEqualWinnersTheSimplerOne) {
  std::vector<double> slow(15, 100);
  EXPECT_EQ(decide_race({{slow, 1}, {std::vector<double>(15, 50), 900}, {std::vector<double>(15, 50.1), 30}}),
            2);
  EXPECT_EQ(decide_race({{slow, 1}, {std::vector<double>(15, 50), 900}, {std::vector<double>(15, 60), 30}}),
            1);
}

TEST(Race, FailedContestantsAreOut) {
  EXPECT_EQ(decide_race({{{100, 100}, 1}, {{}, 1}}), 0);
  EXPECT_EQ(decide_race({{{}, 1}, {{100, 100}, 1}, {{90, 90}, 1}}), 2) << "anyone beats a failed incumbent";
  EXPECT_EQ(decide_race({{{}, 1}, {{}, 1}}), 0);
}

}  // namespace
}  // namespace sylvite::race_test
