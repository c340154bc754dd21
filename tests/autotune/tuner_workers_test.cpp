// The tuner with real spaces and real worker processes, on kernels small enough for seconds.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>

#include "autotune/evaluator.h"
#include "autotune/sqlite.h"
#include "autotune/tuner.h"
#include "base/clock.h"
#include "schedules/space.h"
#include "tests/autotune/sample_kernels.h"
#include "tests/autotune/worker_script.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::tuner_workers_test {
namespace {

TuneOptions options_with(double budget) {
  TuneOptions options;
  options.budget_seconds = budget;
  options.worker_command = SYLVITE_COMMAND;
  return options;
}

/// Creation time of every trial.
std::map<std::string, std::string> trial_times(const std::string& path) {
  SqliteConnection connection(path, SQLITE_OPEN_READWRITE, 10000);
  std::map<std::string, std::string> times;
  SqliteStatement row(connection, "SELECT kernel || candidate, created_at FROM trials");
  while (row.step()) times[row.text(0)] = row.text(1);
  return times;
}

TEST(TunerWithWorkers, WinnersAreCheckedAndReused) {
  Kernel matmul = sample_matmul(64);
  Kernel pointwise = sample_pointwise(10000);
  Machine machine = detect_machine(1);
  Database database("");
  std::vector<TuneTask> tasks = {{&matmul, 2}, {&pointwise, 1}};
  const TuneOptions options = options_with(1800);
  Evaluator evaluator = make_evaluator(options, machine);
  int trials = 0;
  // However slow the machine is: the time is up after so many trials.
  evaluator.now = [&] { return steady_seconds() + (trials < 20 ? 0 : options.budget_seconds); };
  TuneResult result = tune(
      tasks, machine, database, options, [&](const TuneProgress& progress) { trials = progress.trials; },
      evaluator);
  EXPECT_THAT(result.warnings, testing::IsEmpty());
  EXPECT_GT(result.trials, 0);
  for (const TuneTask& task : tasks) {
    auto winner = database.find_winner(*task.kernel, tuning_key(machine, "f32"));
    ASSERT_TRUE(winner);
    EXPECT_EQ(winner->median_us > 0, winner->origin != "untried") << "the time may be up before the second";
    EXPECT_LE(winner->error, 1);
  }
  TuneResult again = tune(tasks, machine, database, options);
  EXPECT_EQ(again.trials, 0);
  EXPECT_EQ(again.compiled, 0);
  EXPECT_EQ(again.choices.at(0).candidate, result.choices.at(0).candidate);
}

TEST(TunerWithWorkers, GoesOnAfterAKill) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  Kernel matmul = sample_matmul(64);
  Machine machine = detect_machine(1);
  {
    Database database(path);
  }
  pid_t child = fork();
  if (child == 0) {
    Database database(path);
    static_cast<void>(tune({{&matmul, 1}}, machine, database, options_with(3600)));
    _exit(0);
  }
  while (trial_times(path).size() < 5) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  auto before = trial_times(path);
  Database database(path);
  EXPECT_EQ(database.warning(), "");
  TuneResult result = tune({{&matmul, 1}}, machine, database, options_with(3));
  auto after = trial_times(path);
  for (const auto& [trial, time] : before) EXPECT_EQ(after[trial], time);
  EXPECT_EQ(after.size(), before.size() + static_cast<std::size_t>(result.trials));
}

/// The command is replaced while this process tunes: the first worker is of this build, the others are not.
TEST(TunerWithWorkers, AReplacedCommandDecidesNothing) {
  TemporaryFolder folder;
  const std::string flag = folder.file("replaced");
  WorkerScript script("if mkdir " + flag + "; then exec " SYLVITE_COMMAND " worker; fi; " +
                      WorkerScript::other_hello + "sleep 1000");
  Kernel matmul = sample_matmul(64);
  Kernel pointwise = sample_pointwise(10000);
  Machine machine = detect_machine(1);
  Database database("");
  TuneOptions options = options_with(4);
  options.worker_command = script.path();
  options.compile_jobs = 1;
  TuneResult result = tune({{&matmul, 1}, {&pointwise, 1}}, machine, database, options);
  EXPECT_THAT(result.warnings, testing::IsEmpty());
  EXPECT_THAT(result.failure, testing::HasSubstr("another build"));
  EXPECT_EQ(result.trials, 0);
  EXPECT_EQ(database.trial_count(), 0);
  EXPECT_EQ(result.choices.at(0).candidate, default_candidate(matmul, machine));
  for (const Kernel* kernel : {&matmul, &pointwise})
    EXPECT_FALSE(database.find_winner(*kernel, tuning_key(machine, "f32")));
}

}  // namespace
}  // namespace sylvite::tuner_workers_test
