#include "autotune/tuner.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "tests/autotune/fake_world.h"

namespace sylvite::tuner_test {
namespace {

using testing::HasSubstr;

TEST_F(TunerTest, FindsTheBest) {
  options.budget_seconds = 60;
  TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(5, 3));
  EXPECT_EQ(result.choices[0].origin, "search");
  EXPECT_EQ(result.choices[0].median_us, 100);
  EXPECT_EQ(result.choices[0].object, "object");
  EXPECT_GT(result.trials, 20);
  EXPECT_THAT(result.rejections, testing::Contains(testing::Key("fake: a of N is too large")));
  auto winner = database.find_winner(kernel, tuning_key(machine, "f32"));
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->candidate, fake_candidate(5, 3));
  EXPECT_EQ(winner->error, 0.1);
  EXPECT_EQ(database.trial_count(), result.trials);
}

TEST_F(TunerTest, PlantedFailuresNeverWin) {
  options.budget_seconds = 60;
  world.compile_outcome = [](std::int64_t a, std::int64_t b) {
    return a == 1 ? Verdict::compile_timeout : a == 2 && b > 3 ? Verdict::compile_error : Verdict::ok;
  };
  world.outcome = [](std::int64_t a, std::int64_t b) -> Measurement {
    if (a == 3) return {Verdict::run_crash, {}, 0, "planted"};
    if (a == 4) return {Verdict::wrong_result, {0.001}, 99, "planted"};
    if (a == 5) return {Verdict::run_timeout, {}, 0, "planted"};
    if (a == 6) return FakeWorld::timed(b % 2 == 0 ? 0 : -1);  // impossible
    return a == 2 ? Measurement{Verdict::ok, {0.5}, 7, ""} : FakeWorld::timed(200 - static_cast<double>(b));
  };
  TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).candidate.form.at("a"), 0);
  for (Verdict verdict : {Verdict::compile_error, Verdict::compile_timeout, Verdict::run_crash,
                          Verdict::run_timeout, Verdict::wrong_result, Verdict::noisy, Verdict::ok}) {
    EXPECT_GT(result.verdicts[verdict], 0) << verdict_name(verdict);
  }
}

TEST_F(TunerTest, TiesKeepTheIncumbent) {
  options.budget_seconds = 60;
  int call = 0;
  world.outcome = [&](std::int64_t, std::int64_t) {  // 10% noise and nothing else
    Measurement result = FakeWorld::timed(0);
    result.samples_us.clear();
    for (int i = 0; i < 15; ++i) result.samples_us.push_back(100 + 10 * std::sin(++call * 12.9898));
    return result;
  };
  TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(0, 0));
  EXPECT_EQ(result.choices[0].origin, "heuristic");
}

TEST_F(TunerTest, KeepsTheBudget) {
  for (double budget : {0.05, 0.3, 1.0, 5.0}) {
    FakeWorld fresh;
    Database empty("");
    Evaluator evaluator = fresh.evaluator();
    options.budget_seconds = budget;
    TuneResult result = tune({{&kernel, 1}}, machine, empty, options, {}, evaluator);
    EXPECT_LE(fresh.clock, budget + 0.5) << budget;
    EXPECT_EQ(result.choices.size(), 1);
  }
}

TEST_F(TunerTest, WithoutBudgetNothingIsMeasured) {
  options.budget_seconds = 0;
  TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(0, 0));
  EXPECT_EQ(result.choices[0].origin, "heuristic");
  EXPECT_EQ(world.compiled + world.measured, 0);
}

TEST_F(TunerTest, AStoredWinnerMeasuresNothing) {
  options.budget_seconds = 2;
  Candidate first = chosen();
  world.compiled = world.measured = 0;
  TuneResult again = run();
  EXPECT_EQ(again.choices.at(0).candidate, first);
  EXPECT_EQ(again.trials, 0);
  EXPECT_EQ(world.compiled + world.measured, 0);
  options.budget_seconds = 0;
  EXPECT_EQ(chosen(), first);
  EXPECT_EQ(world.compiled + world.measured, 0);
  options.budget_seconds = 20;  // more than it was found with: the search goes on
  EXPECT_GT(run().trials, 0);
}

TEST_F(TunerTest, WhatWasUntriedIsHeuristicOnceItIsMeasured) {
  options.budget_seconds = 0.05;
  EXPECT_EQ(run().choices.at(0).origin, "untried");
  world.compile_outcome = [](std::int64_t a, std::int64_t b) {
    return a + b == 0 ? Verdict::ok : Verdict::compile_error;
  };
  options.budget_seconds = 60;
  EXPECT_EQ(run().choices.at(0).origin, "heuristic");
  const auto winner = database.find_winner(kernel, tuning_key(machine, "f32"));
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->origin, "heuristic");
  EXPECT_GT(winner->median_us, 0);
}

TEST_F(TunerTest, APinIsNotSearched) {
  options.budget_seconds = 60;
  options.extend = true;
  database.record_winner(kernel, tuning_key(machine, "f32"),
                         {fake_candidate(0, 7), 900, 0.1, std::string(origin_pinned), 0});
  const TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(0, 7));
  EXPECT_EQ(result.choices[0].origin, "pinned");
  EXPECT_EQ(world.compiled + world.measured, 0);
}

TEST_F(TunerTest, AnExhaustedSearchIsFinal) {
  options.budget_seconds = 1000;
  run();
  world.compiled = world.measured = 0;
  options.budget_seconds = 10000;
  EXPECT_EQ(run().trials, 0);
  EXPECT_EQ(world.compiled + world.measured, 0);
}

/// As after kill -9: trials are stored, no winner is. The search ends where it would have ended, without a
/// repetition.
TEST_F(TunerTest, ResumeRepeatsNoTrial) {
  struct Killed {};
  options.budget_seconds = 1000;
  int trials = 0;
  std::set<std::string> stored;
  for (int kill_after : {1, 3, 17}) {
    Evaluator evaluator = world.evaluator();
    int budget = kill_after;
    auto real = evaluator.measure;
    evaluator.measure = [&](const MeasureJob& job) {
      if (budget-- == 0) throw Killed{};
      return real(job);
    };
    EXPECT_THROW(static_cast<void>(tune({{&kernel, 1}}, machine, database, options, {}, evaluator)), Killed);
    for (const Trial& trial : database.trials(kernel, tuning_key(machine, "f32")))
      stored.insert(trial.candidate.to_string());
    trials = static_cast<int>(stored.size());
  }
  EXPECT_GT(trials, 4);
  world.times_measured.clear();
  TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(5, 3));
  EXPECT_EQ(database.trial_count(), trials + result.trials) << "no candidate was a trial twice";
}

TEST_F(TunerTest, AFailingHeuristicGivesWay) {
  options.budget_seconds = 60;
  world.outcome = [](std::int64_t a, std::int64_t b) -> Measurement {
    return a + b == 0 ? Measurement{Verdict::wrong_result, {}, 50, "planted"} : FakeWorld::timed(100.0);
  };
  EXPECT_FALSE(chosen() == fake_candidate(0, 0));
  world.outcome = [](std::int64_t, std::int64_t) {
    return Measurement{Verdict::run_crash, {}, 0, "planted"};
  };
  database = Database("");
  TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).candidate, Candidate{}) << "the reference";
  EXPECT_EQ(result.choices[0].origin, "reference");
}

TEST_F(TunerTest, AFailingReferenceLeavesTheHeuristicUntried) {
  world.outcome = [](std::int64_t, std::int64_t) {
    return Measurement{Verdict::noisy, {}, 0, "no oracle", /*unverifiable=*/true};
  };
  TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(0, 0));
  EXPECT_EQ(result.choices[0].origin, "untried");
  EXPECT_EQ(database.trial_count(), 0);
  ASSERT_EQ(result.warnings.size(), 1);
  EXPECT_THAT(result.warnings[0], HasSubstr("no oracle"));
}

/// The compiler was killed from outside: neither a trial nor a winner, and the next search judges the kernel.
TEST_F(TunerTest, ALostCompilerDecidesNothing) {
  Evaluator evaluator = world.evaluator();
  auto finish = evaluator.finish_compiling;
  evaluator.finish_compiling = [&](double timeout) {
    auto results = finish(timeout);
    for (auto& result : results) result = CompileResult{Verdict::noisy, "", "lost", 0.1, /*unjudged=*/true};
    return results;
  };
  TuneResult result = tune({{&kernel, 1}}, machine, database, options, {}, evaluator);
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(0, 0));
  EXPECT_THAT(result.warnings, testing::ElementsAre(HasSubstr("lost")));
  EXPECT_EQ(database.trial_count(), 0);
  EXPECT_FALSE(database.find_winner(kernel, tuning_key(machine, "f32")));
  EXPECT_EQ(chosen(), fake_candidate(5, 3));
}

/// A machine that fails at everything ends the search, with its reason and nothing stored.
TEST_F(TunerTest, AMachineThatKeepsFailingEndsTheSearch) {
  Evaluator evaluator = world.evaluator();
  evaluator.finish_compiling = [&](double) {
    world.clock += 0.1;
    return std::vector<std::optional<CompileResult>>(
        world.started.size(), CompileResult{Verdict::noisy, "", "No space left on device", 0.1, true});
  };
  std::vector<Kernel> kernels;
  for (int rows = 1; rows <= 20; ++rows) kernels.push_back(sample_matmul(rows));
  std::vector<TuneTask> tasks;
  tasks.reserve(kernels.size());
  for (const Kernel& each : kernels) tasks.push_back({&each, 1});
  TuneResult result = tune(tasks, machine, database, options, {}, evaluator);
  EXPECT_THAT(result.failure, HasSubstr("No space left on device; make room"));
  EXPECT_LT(world.clock, 1);
  EXPECT_LT(result.warnings.size(), 4);
  EXPECT_EQ(database.trial_count(), 0);
  for (const Kernel& each : kernels) EXPECT_FALSE(database.find_winner(each, tuning_key(machine, "f32")));
}

/// One candidate that the machine fails at (it uses up the memory, say) does not end its kernel's search.
TEST_F(TunerTest, ALostCandidateWaitsForTheNextRun) {
  options.budget_seconds = 1000;
  Evaluator evaluator = world.evaluator();
  auto finish = evaluator.finish_compiling;
  evaluator.finish_compiling = [&](double timeout) {
    auto results = finish(timeout);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (world.started[i].candidate == fake_candidate(5, 3))
        results[i] = CompileResult{Verdict::noisy, "", "std::bad_alloc", 0.1, /*unjudged=*/true};
    return results;
  };
  TuneResult result = tune({{&kernel, 1}}, machine, database, options, {}, evaluator);
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.choices.at(0).median_us, 110) << "the second best";
  auto winner = database.find_winner(kernel, tuning_key(machine, "f32"));
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->budget_seconds, 0) << "the search is not finished";
  EXPECT_EQ(chosen(), fake_candidate(5, 3));
}

TEST_F(TunerTest, AnInterruptionChoosesFromWhatIsKnown) {
  Evaluator evaluator = world.evaluator();
  evaluator.is_interrupted = [&] { return world.measured >= 10; };
  TuneResult result = tune({{&kernel, 1}}, machine, database, options, {}, evaluator);
  EXPECT_LT(world.measured, 15) << "neither another batch nor a race";
  EXPECT_EQ(result.failure, "");
  EXPECT_THAT(result.warnings, testing::IsEmpty());
  EXPECT_GT(result.choices.at(0).median_us, 0);
  auto winner = database.find_winner(kernel, tuning_key(machine, "f32"));
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->budget_seconds, 0) << "the search is not finished";
}

TEST_F(TunerTest, AReferenceWinnerIsSaidLoudly) {
  world.compile_outcome = [](auto, auto) { return Verdict::compile_error; };
  TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).origin, "reference");
  EXPECT_THAT(result.warnings,
              testing::ElementsAre(testing::AllOf(HasSubstr("plain reference schedule"),
                                                  HasSubstr("compile_error, the last: planted"))));
  EXPECT_EQ(run().warnings.size(), 1) << "and again";
}

/// A database of before: what the machine failed at was stored as verdicts, and the reference schedule as winner.
TEST_F(TunerTest, APoisonedDatabaseHeals) {
  const TuningKey key = tuning_key(machine, "f32");
  const Trial poisoned{"",
                       fake_candidate(0, 0),
                       Verdict::compile_error,
                       {},
                       0,
                       0,
                       "filesystem error: temp_directory_path: Not a directory",
                       0.1};
  database.record_trial(kernel, key, poisoned);
  database.record_winner(kernel, key, {Candidate{}, 900, 0, "reference", 1e9});
  options.budget_seconds = 0;
  EXPECT_EQ(chosen(), fake_candidate(0, 0)) << "the heuristic one, for now";
  options.budget_seconds = 60;
  TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(5, 3));
  EXPECT_EQ(database.trials(kernel, key).front().verdict, Verdict::ok);
}

TEST_F(TunerTest, ANoisyHeuristicAloneIsNoWinner) {
  world.outcome = [](std::int64_t a, std::int64_t b) {
    return a + b == 0 ? Measurement{Verdict::noisy, {}, 0, "a busy machine"}
                      : Measurement{Verdict::run_crash, {}, 0, "planted"};
  };
  TuneResult result = run();
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(0, 0));
  EXPECT_FALSE(database.find_winner(kernel, tuning_key(machine, "f32")));
}

/// What was found before workers were lost holds in default mode, and does not end the search for good.
TEST_F(TunerTest, ASearchCutShortIsNotSettled) {
  Evaluator evaluator = world.evaluator();
  evaluator.refusal = [&] { return world.measured < 3 ? "" : "no workers"; };
  auto measure = evaluator.measure;
  evaluator.measure = [&](const MeasureJob& job) {
    auto results = measure(job);
    if (world.measured > 3)
      results.assign(results.size(), {Verdict::noisy, {}, 0, "no workers", /*unverifiable=*/true});
    return results;
  };
  static_cast<void>(tune({{&kernel, 1}}, machine, database, options, {}, evaluator));
  auto winner = database.find_winner(kernel, tuning_key(machine, "f32"));
  ASSERT_TRUE(winner);
  EXPECT_EQ(winner->budget_seconds, 0);
  EXPECT_EQ(chosen(), fake_candidate(5, 3));
}

TEST_F(TunerTest, EqualKernelsAreOneTask) {
  options.budget_seconds = 5;
  Kernel equal = sample_matmul();
  Kernel other = sample_matmul(64);
  Evaluator evaluator = world.evaluator();
  double speedup = 0;
  int last_trials = 0;
  TuneResult result = tune(
      {{&kernel, 2}, {&other, 1}, {&equal, 3}}, machine, database, options,
      [&](const TuneProgress& progress) {
        speedup = progress.speedup_so_far;
        EXPECT_GE(progress.trials, last_trials);
        last_trials = progress.trials;
      },
      evaluator);
  ASSERT_EQ(result.choices.size(), 3);
  EXPECT_EQ(result.choices[0].candidate, result.choices[2].candidate);
  EXPECT_EQ(database.trial_count(), result.trials);
  EXPECT_GT(speedup, 1);
  EXPECT_EQ(last_trials, result.trials);
}

TEST_F(TunerTest, ProgressCountsTheGainOfThisRunAlone) {
  options.budget_seconds = 60;
  options.extend = true;
  std::vector<double> speedups;
  const auto follow = [&](const TuneProgress& progress) { speedups.push_back(progress.speedup_so_far); };
  Evaluator evaluator = world.evaluator();
  options.budget_seconds = 3;
  (void)tune({{&kernel, 1}}, machine, database, options, follow, evaluator);
  EXPECT_EQ(speedups.front(), 1);
  EXPECT_GT(speedups.back(), 1.1);
  world.outcome = [](auto, auto) { return FakeWorld::timed(500); };
  speedups.clear();
  (void)tune({{&kernel, 1}}, machine, database, options, follow, evaluator);
  ASSERT_FALSE(speedups.empty());
  EXPECT_THAT(speedups, testing::Each(1.0)) << "the gain of the first run is not the second one's";
}

TEST_F(TunerTest, ThreadedKernelsAreMeasuredAlone) {
  machine.threads = 2;
  options.budget_seconds = 5;
  Evaluator evaluator = world.evaluator();
  bool compiling = false;
  auto start = evaluator.start_compiling;
  auto finish = evaluator.finish_compiling;
  auto measure = evaluator.measure;
  evaluator.start_compiling = [&](std::vector<CompileJob> jobs) {
    compiling = true;
    start(std::move(jobs));
  };
  evaluator.finish_compiling = [&](double timeout) {
    compiling = false;
    return finish(timeout);
  };
  evaluator.measure = [&](const MeasureJob& job) {
    EXPECT_FALSE(compiling);
    EXPECT_EQ(job.timing.threads, 2);
    return measure(job);
  };
  EXPECT_GT(tune({{&kernel, 1}}, machine, database, options, {}, evaluator).trials, 0);
}

}  // namespace
}  // namespace sylvite::tuner_test
