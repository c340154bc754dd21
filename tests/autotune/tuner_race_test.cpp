// The final race: a narrow lead must repeat.

#include <gmock/gmock.h>

#include "tests/autotune/fake_world.h"

namespace sylvite::tuner_race_test {
namespace {

using testing::HasSubstr;

/// The heuristic candidate takes 100 us; the challenger takes what `times` says of each race, and 90 us before the first.
struct TunerRaceTest : TunerTest {
  const Candidate challenger = fake_candidate(1, 0);
  std::vector<double> times;  ///< by race
  double others_us = 200;
  double race_seconds = 0.05;
  std::size_t races = 0;
  std::vector<std::size_t> contestants;  ///< by race

  TuneResult race() {
    options.budget_seconds = 60;
    double challenger_us = 90;
    world.outcome = [&](std::int64_t a, std::int64_t b) {
      const bool is_challenger = a == 1 && b == 0;
      return FakeWorld::timed(is_challenger ? challenger_us : a + b == 0 ? 100 : others_us);
    };
    Evaluator evaluator = world.evaluator();
    auto measure = evaluator.measure;
    evaluator.measure = [&](const MeasureJob& job) {
      constexpr int race_samples = 15;
      if (job.timing.samples != race_samples) return measure(job);
      contestants.push_back(job.candidates.size());
      challenger_us = times.at(races++);
      world.clock += race_seconds;
      return measure(job);
    };
    return tune({{&kernel, 1}}, machine, database, options, {}, evaluator);
  }
  /// The only race that is stored.
  Race stored() {
    const std::vector<Race> rows = database.races(kernel, tuning_key(machine, "f32"));
    EXPECT_EQ(rows.size(), 1);
    return rows.at(0);
  }
};

TEST_F(TunerRaceTest, AClearLeadWinsAtOnce) {
  times = {94};
  const TuneResult result = race();
  EXPECT_EQ(result.choices.at(0).candidate, challenger);
  EXPECT_EQ(result.choices[0].why, "0.940 of the time of the heuristic schedule in the race");
  EXPECT_EQ(races, 1);
  EXPECT_EQ(stored().result, "won");
  EXPECT_EQ(stored().challenger_us.size(), 15);
}

TEST_F(TunerRaceTest, ANarrowLeadWinsWhenItRepeats) {
  for (const auto& [first, second] : {std::pair{96.0, 98.0}, std::pair{98.0, 90.0}}) {
    database = Database("");
    races = 0;
    times = {first, second};
    const TuneResult result = race();
    EXPECT_EQ(races, 2);
    EXPECT_EQ(result.choices.at(0).candidate, challenger);
    EXPECT_EQ(result.choices[0].origin, "search");
    EXPECT_EQ(result.choices[0].median_us, (first + second) / 2) << "of both races";
    EXPECT_EQ(result.choices[0].why,
              "0.980 of the time of the heuristic schedule in the closer of two races");
    const Race row = stored();
    EXPECT_EQ(row.result, "won");
    EXPECT_EQ(row.incumbent_us, std::vector<double>(30, 100));
    EXPECT_EQ(row.challenger_us.size(), 30);
    EXPECT_EQ(row.challenger_us.front(), first);
    EXPECT_EQ(row.challenger_us.back(), second);
  }
}

TEST_F(TunerRaceTest, ANarrowLeadThatDoesNotRepeatLoses) {
  for (const double second : {99.9, 100.0, 104.0}) {
    database = Database("");
    races = 0;
    times = {97, second};
    const TuneResult result = race();
    EXPECT_EQ(races, 2) << second;
    EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(0, 0)) << second;
    EXPECT_EQ(result.choices[0].origin, "heuristic");
    EXPECT_EQ(result.choices[0].median_us, 100);
    EXPECT_THAT(result.choices[0].why, HasSubstr("did not repeat"));
    EXPECT_EQ(stored().result, "tie") << second;
    EXPECT_EQ(stored().challenger_us.size(), 30);
  }
}

TEST_F(TunerRaceTest, OnlyTheTwoRaceAgain) {
  times = {97, 97};
  others_us = 101;
  EXPECT_EQ(race().choices.at(0).candidate, challenger);
  EXPECT_EQ(contestants, (std::vector<std::size_t>{4, 2}));
}

TEST_F(TunerRaceTest, WithoutTimeForAnotherRaceTheIncumbentStays) {
  times = {97};
  race_seconds = 60;  // the whole budget
  const TuneResult result = race();
  EXPECT_EQ(races, 1);
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(0, 0));
  EXPECT_EQ(stored().result, "tie");
  EXPECT_EQ(stored().challenger_us.size(), 15);
}

}  // namespace
}  // namespace sylvite::tuner_race_test
