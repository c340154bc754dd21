#include "autotune/database_queries.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "autotune/sqlite.h"
#include "tests/autotune/sample_kernels.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::database_queries_test {
namespace {

using testing::HasSubstr;

const TuningKey key{"x86-64-linux", "test machine", 1, "halide 21", "f32"};

Candidate numbered(int number) {
  Candidate candidate;
  candidate.schedule.decisions.push_back({"v0", -1, "vectorize", {"d0", std::to_string(number)}});
  return candidate;
}

void record(Database& database, const Kernel& kernel, int number, double us, Verdict verdict = Verdict::ok) {
  database.record_trial(kernel, key, {"", numbered(number), verdict, {us}, us, 0.5, "said", 0.25});
}

TEST(DatabaseQueries, TopAndTrials) {
  Database database("");
  Kernel slow = sample_matmul();
  Kernel fast = sample_pointwise();
  record(database, slow, 1, 300);
  record(database, slow, 2, 0, Verdict::run_crash);
  record(database, slow, 3, 100);
  record(database, fast, 1, 5);
  database.record_winner(fast, key, {numbered(1), 5, 0.5, "heuristic", 60});
  database.record_winner(slow, key, {numbered(3), 100, 0.5, "search", 60});
  auto top = top_winners(database, 10);
  ASSERT_EQ(top.size(), 2);
  EXPECT_EQ(top[0].kernel, slow.id);
  EXPECT_EQ(top[0].trials, 3);
  EXPECT_EQ(top[0].slowest_us, 300);
  EXPECT_EQ(top[0].key, key);
  EXPECT_EQ(top_winners(database, 10, fast.id.substr(0, 6)).size(), 1);
  auto trials = list_trials(database, slow.id, 10, /*by_time=*/true);
  ASSERT_EQ(trials.size(), 3);
  EXPECT_EQ(trials[0].median_us, 100);
  EXPECT_EQ(trials[2].verdict, "run_crash");
  EXPECT_EQ(list_trials(database, slow.id, 10, /*by_time=*/false)[0].median_us, 300);
  DatabaseStats stats = database_stats(database);
  EXPECT_EQ(stats.trials, 4);
  EXPECT_EQ(stats.trials_by_verdict["run_crash"], 1);
  EXPECT_EQ(stats.winners_by_origin["search"], 1);
  EXPECT_EQ(stats.compile_seconds, 1);
  EXPECT_EQ(stats.integrity, "ok");
}

TEST(DatabaseQueries, ForgetsByKernelVerdictAndDate) {
  Database database("");
  const Kernel first = sample_matmul();
  const Kernel second = sample_pointwise();
  record(database, first, 1, 300);
  record(database, first, 2, 0, Verdict::run_crash);
  record(database, second, 1, 5);
  database.record_winner(first, key, {numbered(1), 300, 0.5, "search", 60});
  database.record_winner(second, key, {numbered(1), 5, 0.5, "search", 60});
  EXPECT_EQ(forget_rows(database, {.before = "2001"}).trials, 0);
  const ForgetReport crashes = forget_rows(database, {.verdict = "run_crash"});
  EXPECT_EQ(crashes.trials, 1);
  EXPECT_EQ(crashes.winners, 0);
  const ForgetReport kernel = forget_rows(database, {.kernel_prefix = first.id.substr(0, 8)});
  EXPECT_EQ(kernel.trials, 1);
  EXPECT_EQ(kernel.winners, 1);
  EXPECT_FALSE(database.find_winner(first, key));
  EXPECT_TRUE(database.find_winner(second, key));
  EXPECT_EQ(forget_rows(database, {.before = "9999"}).winners, 1);
}

TEST(DatabaseQueries, ExportsOneObjectPerLine) {
  Database database("");
  Kernel kernel = sample_matmul();
  record(database, kernel, 1, 300);
  database.record_winner(kernel, key, {numbered(1), 300, 0.5, "search", 1.0 / 0.0});
  std::stringstream output;
  EXPECT_EQ(export_jsonl(database, output), 3);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(output, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 3);
  EXPECT_EQ(lines[0].at("text"), kernel.text);
  EXPECT_EQ(lines[1].at("samples_us"), nlohmann::json({300.0}));
  EXPECT_EQ(lines[1].at("threads"), 1);
  EXPECT_TRUE(lines[2].at("budget_seconds").is_null()) << "unlimited";
}

/// What the machine failed at is no knowledge to hand on.
TEST(DatabaseQueries, ExportsNoFailureOfTheMachine) {
  Database database("");
  const Kernel poisoned = sample_matmul();
  const Kernel slow = sample_pointwise();
  database.record_trial(poisoned, key,
                        {"", numbered(1), Verdict::compile_error, {}, 0, 0, "No space left on device", 0.1});
  database.record_winner(poisoned, key, {numbered(0), 900, 0.5, "reference", 60});
  record(database, slow, 1, 0, Verdict::wrong_result);
  database.record_winner(slow, key, {numbered(0), 90, 0.5, "reference", 60});
  std::stringstream output;
  EXPECT_EQ(export_jsonl(database, output), 4) << "two kernels, and what is known of one";
  for (std::string line; std::getline(output, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    if (row["record"] != "kernel") EXPECT_EQ(row["kernel"], slow.id) << line;
  }
}

TEST(DatabaseQueries, MergesAnotherFile) {
  TemporaryFolder folder;
  std::string path = folder.file("other.db");
  Kernel kernel = sample_matmul();
  Kernel theirs_only = sample_pointwise();
  {
    Database other(path);
    record(other, kernel, 1, 90);
    record(other, kernel, 2, 80);
    record(other, theirs_only, 1, 7);
    other.record_winner(kernel, key, {numbered(2), 80, 0.5, "search", 60});
    other.record_winner(theirs_only, key, {numbered(1), 7, 0.5, "search", 60});
  }
  Database database(folder.file("mine.db"));
  record(database, kernel, 1, 100);
  database.record_winner(kernel, key, {numbered(1), 100, 0.5, "heuristic", 60});
  MergeReport report = merge_database(database, path);
  EXPECT_EQ(report.kernels, 1);
  EXPECT_EQ(report.trials, 2);
  EXPECT_EQ(report.winners, 2);
  EXPECT_EQ(database.trial_count(), 3);
  EXPECT_EQ(database.find_winner(kernel, key)->candidate, numbered(2));
  EXPECT_TRUE(database.find_winner(theirs_only, key));
  report = merge_database(database, path);
  EXPECT_EQ(report.kernels + report.trials + report.winners, 0) << "merging twice changes nothing";
}

/// A pin is neither lost nor overwritten, however fast the others are.
TEST(DatabaseQueries, MergesPins) {
  TemporaryFolder folder;
  const Kernel pinned_here = sample_matmul();
  const Kernel pinned_there = sample_pointwise();
  {
    Database other(folder.file("other.db"));
    other.record_winner(pinned_here, key, {numbered(1), 1, 0.5, "search", 60});
    other.record_winner(pinned_there, key, {numbered(1), 90, 0.5, "pinned", 0});
  }
  Database database(folder.file("mine.db"));
  database.record_winner(pinned_here, key, {numbered(2), 100, 0.5, "pinned", 0});
  database.record_winner(pinned_there, key, {numbered(2), 10, 0.5, "search", 60});
  EXPECT_EQ(merge_database(database, folder.file("other.db")).winners, 1);
  EXPECT_EQ(database.find_winner(pinned_here, key)->candidate, numbered(2));
  EXPECT_EQ(database.find_winner(pinned_there, key)->candidate, numbered(1));
  EXPECT_EQ(merge_database(database, folder.file("other.db")).winners, 0);
  EXPECT_EQ(forget_rows(database, {.kernel_prefix = pinned_here.id}).winners, 1)
      << "forgetting takes pins, too";
}

/// What the machine failed at there is not carried here, and gives way to what is known there.
TEST(DatabaseQueries, MergesNoFailureOfTheMachine) {
  TemporaryFolder folder;
  Kernel kernel = sample_matmul();
  const Trial failed{"", numbered(1), Verdict::compile_error, {}, 0, 0, "std::bad_alloc", 0.1};
  {
    Database other(folder.file("poisoned.db"));
    other.record_trial(kernel, key, failed);
    other.record_winner(kernel, key, {numbered(0), 900, 0.5, "reference", 60});
  }
  {
    Database other(folder.file("sound.db"));
    record(other, kernel, 1, 90);
  }
  Database database(folder.file("mine.db"));
  MergeReport report = merge_database(database, folder.file("poisoned.db"));
  EXPECT_EQ(report.trials + report.winners, 0);
  database.record_trial(kernel, key, failed);
  EXPECT_EQ(database_stats(database).trials_by_verdict["to be tried again"], 1);
  EXPECT_EQ(merge_database(database, folder.file("sound.db")).trials, 1);
  EXPECT_EQ(database.trials(kernel, key).at(0).median_us, 90);
}

TEST(DatabaseQueries, RefusesToMergeOtherFiles) {
  TemporaryFolder folder;
  Database database("");
  EXPECT_THROW(merge_database(database, folder.file("absent.db")), IoError);
  std::ofstream(folder.file("text.db")) << std::string(1000, 'x');
  try {
    merge_database(database, folder.file("text.db"));
    ADD_FAILURE();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("text.db"));
  }
  SqliteConnection(folder.file("foreign.db"), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, 0)
      .execute("CREATE TABLE mine(x)");
  EXPECT_THROW(merge_database(database, folder.file("foreign.db")), IoError);
  Database mine(folder.file("mine.db"));
  EXPECT_THROW(merge_database(mine, folder.file("mine.db")), UsageError) << "into itself";
}

}  // namespace
}  // namespace sylvite::database_queries_test
