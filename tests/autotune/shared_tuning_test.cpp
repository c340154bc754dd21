// Processes that tune with one database at once: another one is a second connection, or a child that only says what it is at.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "autotune/sqlite.h"
#include "tests/autotune/fake_world.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::shared_tuning_test {
namespace {

/// A child that says it is at a kernel, until its end.
class Neighbour {
 public:
  Neighbour(const std::string& path, const TuningKey& key, const std::string& kernel) {
    int ready[2];
    int leave[2];
    EXPECT_EQ(::pipe(ready) | ::pipe(leave), 0);
    process_ = ::fork();
    char byte = 0;
    if (process_ == 0) {
      ::close(leave[1]);
      Database(path).announce(key, {kernel});
      (void)!::write(ready[1], &byte, 1);
      (void)!::read(leave[0], &byte, 1);
      ::_exit(0);
    }
    ::close(ready[1]);
    ::close(leave[0]);
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    leave_ = leave[1];
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  ~Neighbour() { end(); }
  void end() {
    if (process_ == 0) return;
    ::close(leave_);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_ = 0;
  int leave_ = 0;
};

struct SharedTuning : TunerTest {
  TemporaryFolder folder;
  std::string path = folder.file("trials.db");
  TuningKey key = tuning_key(machine, "f32");
  Kernel second = sample_pointwise();
  SharedTuning() { database = Database(path); }

  static Trial trial_of(const Kernel& kernel, const Candidate& candidate, double us) {
    return {kernel.id, candidate, Verdict::ok, {us, us, us}, us, 0.1, "", 0.1};
  }
  /// When the first candidate is measured here, `act` happens elsewhere.
  void at_first_measurement(const std::function<void(Database&)>& act) {
    world.outcome = [this, act, usual = world.outcome, done = false](std::int64_t a, std::int64_t b) mutable {
      if (!done) {
        done = true;
        Database other(path);
        act(other);
      }
      return usual(a, b);
    };
  }
};

TEST_F(SharedTuning, WhatAnotherProcessMeasuredIsNotMeasuredAgain) {
  options.budget_seconds = 60;
  at_first_measurement([this](Database& other) {
    for (std::int64_t a = 0; a < 7; ++a)
      for (std::int64_t b = 0; b < 8; ++b)
        if (a + b > 0)
          other.record_trial(kernel, key, trial_of(kernel, fake_candidate(a, b), 100 + (a == 5 ? 0 : 50)));
  });
  const TuneResult result = run();
  EXPECT_EQ(result.trials, 1) << "the incumbent";
  EXPECT_EQ(result.choices.at(0).origin, "search");
  EXPECT_EQ(result.choices[0].candidate.form.at("a"), 5);
}

TEST_F(SharedTuning, TriesKernelsThatNoOtherProcessIsAt) {
  options.budget_seconds = 60;
  std::vector<std::string> order;
  Evaluator evaluator = world.evaluator();
  evaluator.start_compiling = [&](std::vector<CompileJob> jobs) {
    if (!jobs.empty()) order.push_back(jobs.front().kernel->id);
    world.started = std::move(jobs);
  };
  const Neighbour neighbour(path, key, kernel.id);
  const TuneResult result = tune({{&kernel, 1000}, {&second, 1}}, machine, database, options, {}, evaluator);
  const auto begun = std::ranges::find(order, kernel.id);
  EXPECT_GT(begun - order.begin(), 5) << "not before the other kernel is searched";
  EXPECT_NE(begun, order.end()) << "rather than nothing";
  EXPECT_EQ(result.choices.at(0).candidate, fake_candidate(5, 3));
}

TEST_F(SharedTuning, SaysWhatItIsAtWhileItIs) {
  options.budget_seconds = 1;
  Neighbour neighbour(path, key, second.id);
  EXPECT_EQ(database.kernels_elsewhere(key), std::set<std::string>{second.id});
  EXPECT_TRUE(database.kernels_elsewhere(tuning_key(machine, "bf16")).empty());
  neighbour.end();
  EXPECT_TRUE(database.kernels_elsewhere(key).empty()) << "it has ended";
  database.announce(key, {kernel.id});
  EXPECT_TRUE(database.kernels_elsewhere(key).empty()) << "its own";
  const pid_t child = ::fork();
  if (child == 0) ::_exit(Database(path).kernels_elsewhere(key) == std::set<std::string>{kernel.id} ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  (void)run();
  SqliteConnection file(path, SQLITE_OPEN_READWRITE, 10000);
  EXPECT_EQ(file.integer("SELECT count(*) FROM meta"), 2) << "nothing is left behind";
}

TEST_F(SharedTuning, WinnersOfOthersAreTakenAndKept) {
  options.budget_seconds = 0.4;  // one kernel's turn does not come
  const Winner theirs{fake_candidate(5, 3), 100, 0.1, std::string(origin_search), 60};
  at_first_measurement([&](Database& other) {
    for (const Kernel* each : {&kernel, &second}) {
      other.record_trial(*each, key, trial_of(*each, theirs.candidate, theirs.median_us));
      other.record_winner(*each, key, theirs);
    }
  });
  Evaluator evaluator = world.evaluator();
  const TuneResult result = tune({{&kernel, 1000}, {&second, 1}}, machine, database, options, {}, evaluator);
  for (const TuneChoice& choice : result.choices) EXPECT_EQ(choice.candidate, theirs.candidate) << choice.why;
  EXPECT_EQ(result.choices.at(1).why, "the winner of another process");
  for (const Kernel* each : {&kernel, &second})
    EXPECT_EQ(database.find_winner(*each, key)->candidate, theirs.candidate);
}

TEST_F(SharedTuning, WhatWasNotTriedReplacesNoWinner) {
  database.record_winner(kernel, key, {fake_candidate(0, 0), 0, 0, std::string(origin_untried), 60});
  database.record_winner(kernel, key, {fake_candidate(0, 0), 0, 0, std::string(origin_untried), 90});
  EXPECT_EQ(database.find_winner(kernel, key)->budget_seconds, 90);
  database.record_winner(kernel, key, {fake_candidate(5, 3), 100, 0.1, std::string(origin_search), 60});
  database.record_winner(kernel, key, {fake_candidate(0, 0), 0, 0, std::string(origin_untried), 90});
  EXPECT_EQ(database.find_winner(kernel, key)->origin, "search");
}

}  // namespace
}  // namespace sylvite::shared_tuning_test
