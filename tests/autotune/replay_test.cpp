#include "autotune/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "autotune/database_queries.h"
#include "tests/autotune/sample_kernels.h"

namespace sylvite::replay_test {
namespace {

Candidate numbered(std::int64_t number) {
  Candidate candidate;
  candidate.form.name = "fake";
  candidate.form.parameters = {{"a", number}};
  return candidate;
}

constexpr std::int64_t fallback_number = 0;
constexpr std::int64_t winner_number = 5;

/// A machine on which candidate number n takes `us(n, measurement)`.
struct ReplayTest : testing::Test {
  std::function<Measurement(std::int64_t, int)> outcome = [](std::int64_t number, int) {
    return timed(number == winner_number ? 100 : 150);
  };
  std::function<CompileResult(std::int64_t)> compile_outcome = [](std::int64_t) {
    return CompileResult{Verdict::ok, "object", "", 0.1};
  };
  std::map<std::int64_t, int> measurements;
  std::vector<CompileJob> started;
  Kernel kernel = sample_matmul();
  Machine machine;
  TuningKey key = tuning_key(machine, "f32");
  TuningKey old_key = [this] {
    TuningKey old = key;
    old.versions = "halide 1";
    return old;
  }();
  Database database{""};

  static Measurement timed(double us) { return {Verdict::ok, {us, us, us, us}, 0.1, ""}; }

  void store(const TuningKey& under, double us = 100, double budget = 60) {
    database.record_trial(kernel, under,
                          {kernel.id, numbered(winner_number), Verdict::ok, {us, us, us}, us, 0, "", 0});
    database.record_winner(kernel, under, {numbered(winner_number), us, 0, "search", budget});
  }

  Evaluator evaluator() {
    Evaluator evaluator;
    evaluator.spaces = [](const Kernel&, const Machine&) {
      return std::vector<BoundSpace>{{.name = "fake",
                                      .parameters = {},
                                      .heuristic = {},
                                      .at = [](const Point&) { return numbered(fallback_number); },
                                      .cost = {}}};
    };
    evaluator.reference = [](const Kernel&) { return Candidate{}; };
    evaluator.start_compiling = [this](std::vector<CompileJob> jobs) { started = std::move(jobs); };
    evaluator.finish_compiling = [this](double) {
      std::vector<std::optional<CompileResult>> results;
      results.reserve(started.size());
      for (const CompileJob& job : started)
        results.emplace_back(job.candidate.form.name == "fake"
                                 ? compile_outcome(job.candidate.form.at("a"))
                                 : CompileResult{Verdict::ok, "reference", "", 0.1});
      return results;
    };
    evaluator.measure = [this](const MeasureJob& job) {
      std::vector<Measurement> results;
      for (const CompiledCandidate& candidate : job.candidates) {
        const std::int64_t number = candidate.candidate.form.at("a");
        results.push_back(outcome(number, measurements[number]++));
      }
      return results;
    };
    evaluator.now = [] { return 0.0; };
    return evaluator;
  }

  Replayed replay_one() {
    Evaluator world = evaluator();
    tasks = replay_tasks(database, key);
    results = replay(tasks, machine, {}, world);
    return results.at(0);
  }

  std::vector<ReplayTask> tasks;
  std::vector<Replayed> results;
};

TEST_F(ReplayTest, AWinnerThatTakesItsTimeHeld) {
  store(key);
  const Replayed now = replay_one();
  EXPECT_EQ(now.movement, Movement::held);
  EXPECT_DOUBLE_EQ(now.ratio, 1);
  EXPECT_DOUBLE_EQ(now.default_ratio, 1.5);
  EXPECT_EQ(measurements[winner_number], 3);
}

TEST_F(ReplayTest, SlowerAndFasterAreBeyondTheNoise) {
  store(key);
  outcome = [](std::int64_t, int) { return timed(120); };
  EXPECT_EQ(replay_one().movement, Movement::slower);
  outcome = [](std::int64_t, int) { return timed(80); };
  EXPECT_EQ(replay_one().movement, Movement::faster);
  outcome = [](std::int64_t, int) { return timed(102); };
  EXPECT_EQ(replay_one().movement, Movement::held);
  outcome = [](std::int64_t, int) { return Measurement{Verdict::ok, {80, 100, 110, 140, 150}, 0, ""}; };
  EXPECT_EQ(replay_one().movement, Movement::held) << "what scatters so much says nothing";
}

TEST_F(ReplayTest, WhatAllHaveInCommonIsTheMachine) {
  const auto take = [&](const std::vector<double>& now_us) {
    Evaluator world = evaluator();
    tasks.clear();
    for (std::size_t i = 0; i < now_us.size(); ++i)
      tasks.push_back({sample_matmul(static_cast<std::int64_t>(i + 1)),
                       key,
                       {numbered(winner_number), 100, 0, "search", 60},
                       {}});
    world.measure = [&](const MeasureJob& job) {
      const auto extent =
          static_cast<std::size_t>(job.kernel->body.type(job.kernel->body.inputs[0]).dims()[0]);
      return std::vector<Measurement>{timed(now_us.at(extent - 1)), timed(1000)};
    };
    results = replay(tasks, machine, {}, world);
    std::vector<Movement> movements;
    movements.reserve(results.size());
    for (const Replayed& result : results) movements.push_back(result.movement);
    return movements;
  };
  using testing::ElementsAre;
  using enum Movement;
  EXPECT_THAT(take({150, 150, 150, 150, 150}), ElementsAre(held, held, held, held, held)) << "a busy machine";
  EXPECT_EQ(results[0].machine_ratio, 1.5);
  EXPECT_THAT(take({150, 150, 150, 150, 200}), ElementsAre(held, held, held, held, slower));
  EXPECT_THAT(take({150, 150, 150, 150, 100}), ElementsAre(held, held, held, held, faster));
  EXPECT_THAT(take({120, 190, 150, 150, 170}), ElementsAre(held, held, held, held, held))
      << "busy now and then";
  EXPECT_THAT(take({150, 100}), ElementsAre(slower, held)) << "too few to tell";
}

TEST_F(ReplayTest, ABusyRoundIsNoChange) {
  store(key);
  outcome = [](std::int64_t, int measurement) { return timed(measurement == 1 ? 100 : 190); };
  EXPECT_EQ(replay_one().movement, Movement::held);
}

TEST_F(ReplayTest, TheDefaultScheduleMayBeFasterNow) {
  store(key);
  outcome = [](std::int64_t number, int) { return timed(number == winner_number ? 100 : 90); };
  EXPECT_EQ(replay_one().movement, Movement::beaten);
  EXPECT_EQ(database.find_winner(kernel, key)->origin, "search") << "nothing is stored yet";
  store_replay(tasks, results, key, database);
  const Winner winner = *database.find_winner(kernel, key);
  EXPECT_EQ(winner.candidate, numbered(fallback_number));
  EXPECT_EQ(winner.origin, "heuristic");
  EXPECT_EQ(winner.median_us, 90);
  EXPECT_EQ(winner.budget_seconds, 0) << "to be searched again";
}

TEST_F(ReplayTest, APinnedOneStays) {
  store(key);
  database.record_winner(kernel, key, {numbered(winner_number), 100, 0, std::string(origin_pinned), 60});
  outcome = [](std::int64_t number, int) { return timed(number == winner_number ? 100 : 90); };
  EXPECT_EQ(replay_one().movement, Movement::beaten);
  store_replay(tasks, results, key, database);
  EXPECT_EQ(database.find_winner(kernel, key)->candidate, numbered(winner_number));
  outcome = [](std::int64_t, int) { return timed(130); };
  EXPECT_EQ(replay_one().movement, Movement::slower);
  store_replay(tasks, results, key, database);
  EXPECT_EQ(database.find_winner(kernel, key)->origin, origin_pinned);
  EXPECT_EQ(database.find_winner(kernel, key)->median_us, 130);
}

TEST_F(ReplayTest, OneThatFailsGivesWay) {
  store(key);
  compile_outcome = [](std::int64_t number) {
    if (number == fallback_number) return CompileResult{Verdict::ok, "object", "", 0.1};
    return CompileResult{Verdict::compile_error, "", "no such directive", 0.1};
  };
  const Replayed now = replay_one();
  EXPECT_EQ(now.movement, Movement::failed);
  EXPECT_EQ(now.message, "no such directive");
  store_replay(tasks, results, key, database);
  EXPECT_EQ(database.find_winner(kernel, key)->candidate, numbered(fallback_number));
  EXPECT_EQ(database.trials(kernel, key).at(0).verdict, Verdict::compile_error);
}

TEST_F(ReplayTest, WrongResultsFail) {
  store(key);
  outcome = [](std::int64_t number, int measurement) {
    if (number == winner_number && measurement == 2)
      return Measurement{Verdict::wrong_result, {}, 7, "differs"};
    return timed(100);
  };
  EXPECT_EQ(replay_one().movement, Movement::failed);
}

TEST_F(ReplayTest, WhatTheMachineFailsAtIsUnknown) {
  store(key);
  outcome = [](std::int64_t, int) {
    Measurement none;
    none.unverifiable = true;
    none.message = "out of memory";
    return none;
  };
  const Replayed now = replay_one();
  EXPECT_EQ(now.movement, Movement::unknown);
  EXPECT_EQ(now.message, "out of memory");
  store_replay(tasks, results, key, database);
  EXPECT_EQ(database.find_winner(kernel, key)->median_us, 100);
}

TEST_F(ReplayTest, TimesAreStoredWhenWanted) {
  store(key);
  outcome = [](std::int64_t number, int) { return timed(number == winner_number ? 120 : 150); };
  (void)replay_one();
  store_replay(tasks, results, key, database);
  const Winner winner = *database.find_winner(kernel, key);
  EXPECT_EQ(winner.median_us, 120);
  EXPECT_EQ(winner.origin, "search");
  EXPECT_EQ(winner.budget_seconds, 60);
  EXPECT_EQ(replay_one().movement, Movement::held);
}

TEST_F(ReplayTest, WinnersOfOtherVersionsAreTakenAlong) {
  store(old_key);
  EXPECT_EQ(replay_one().movement, Movement::held);
  EXPECT_EQ(tasks[0].stored_key, old_key);
  EXPECT_FALSE(database.find_winner(kernel, key));
  store_replay(tasks, results, key, database);
  EXPECT_EQ(database.find_winner(kernel, key)->candidate, numbered(winner_number));
  EXPECT_EQ(database.find_winner(kernel, key)->budget_seconds, 0);
  EXPECT_EQ(replay_tasks(database, key)[0].stored_key, key) << "its own key comes first";
}

TEST_F(ReplayTest, OnlyMeasuredWinnersOfThisMachineAreTasks) {
  store(key, 0);
  EXPECT_TRUE(replay_tasks(database, key).empty()) << "never measured";
  TuningKey other = key;
  other.machine = "another CPU";
  store(other);
  EXPECT_TRUE(replay_tasks(database, key).empty());
  store(key);
  EXPECT_EQ(replay_tasks(database, key, kernel.id.substr(0, 4)).size(), 1);
  EXPECT_TRUE(replay_tasks(database, key, "zzz").empty());
  EXPECT_EQ(winner_keys(database).size(), 2);
}

TEST_F(ReplayTest, AnInterruptionLeavesTheRestUnknown) {
  store(key);
  Evaluator world = evaluator();
  world.is_interrupted = [] { return true; };
  tasks = replay_tasks(database, key);
  EXPECT_EQ(replay(tasks, machine, {}, world).at(0).movement, Movement::unknown);
}

}  // namespace
}  // namespace sylvite::replay_test
