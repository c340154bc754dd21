// Sweeps: the plan, resuming, and a kill in the middle.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <filesystem>
#include <regex>
#include <thread>

#include "autotune/database.h"
#include "autotune/database_queries.h"
#include "base/error.h"
#include "base/files.h"
#include "tests/cli/command.h"

namespace sylvite::sweep_test {
namespace {

using testing::HasSubstr;
using testing_command::fresh_folder;
using testing_command::Result;
using testing_command::run_command;
using testing_command::small_model;
using testing_command::start_command;

class Sweep : public testing::Test {
 protected:
  void SetUp() override {
    write_file(folder_ + "/small.onnx", small_model(3));
    write_file(sweep_, "[sweep]\nmodels = small.onnx\nbudget = 5s\n[compile]\nthreads = 1\n");
  }
  [[nodiscard]] std::vector<std::string> words() const { return {"sweep", sweep_, "--db", db_}; }
  [[nodiscard]] std::int64_t stored_trials() const { return Database(db_).trial_count(); }

  const std::string folder_ = fresh_folder();
  const std::string sweep_ = folder_ + "/sweep.ini";
  const std::string db_ = folder_ + "/trials.db";
};

/// K of the last ", K trials in" of the output; 0 when it says nothing of trials.
std::int64_t reported_trials(const std::string& text) {
  std::smatch match;
  return std::regex_search(text, match, std::regex(", (\\d+) trials in")) ? std::stoll(match[1]) : 0;
}

TEST_F(Sweep, PlanComesFirstAndDoneItemsAreSkipped) {
  write_file(sweep_, "[sweep]\nmodels = small.onnx\nmodes = default\nthreads = 1, 2\n");
  const Result plan = run_command({"sweep", sweep_, "--db", db_, "--plan"}, folder_);
  EXPECT_FALSE(std::filesystem::exists(db_));
  EXPECT_THAT(plan.out, HasSubstr("2 items"));
  EXPECT_THAT(run_command(words(), folder_).out, HasSubstr("2 done now, 0 done before, 0 failed"));
  EXPECT_THAT(run_command(words(), folder_).out, HasSubstr("0 done now, 2 done before, 0 failed"));
}

TEST_F(Sweep, AFailedItemIsNotTheEnd) {
  write_file(folder_ + "/bad.onnx", "junk");
  write_file(sweep_, "[sweep]\nmodels = bad.onnx, small.onnx\nmodes = default\n");
  const Result result = run_command(words(), folder_);
  EXPECT_EQ(result.exit_code, static_cast<int>(ErrorCode::bad_model));
  EXPECT_THAT(result.err, HasSubstr("bad.onnx"));
  EXPECT_THAT(result.out, HasSubstr("1 done now, 0 done before, 1 failed"));
}

TEST_F(Sweep, KilledInTheMiddleItGoesOnWithoutRepeatingATrial) {
  write_file(sweep_, "[sweep]\nmodels = small.onnx\nbudget = 600s\n[compile]\nthreads = 1\n");
  const int process = start_command(words(), folder_);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(600);
  while (stored_trials() < 2 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  write_file(sweep_, "[sweep]\nmodels = small.onnx\nbudget = 5s\n[compile]\nthreads = 1\n");
  const std::int64_t before = stored_trials();
  ASSERT_GE(before, 2);
  EXPECT_EQ(database_stats(Database(db_)).integrity, "ok");

  const Result again = run_command(words(), folder_);
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("1 done now, 0 done before"));
  EXPECT_EQ(stored_trials(), before + reported_trials(again.out)) << again.out;
  EXPECT_EQ(database_stats(Database(db_)).integrity, "ok");
  EXPECT_THAT(run_command(words(), folder_).out, HasSubstr("0 done now, 1 done before"));
}

TEST_F(Sweep, ATunedModelRunsFromTheDatabase) {
  write_file(sweep_, "[sweep]\nmodels = small.onnx\nbudget = 2s\n");
  ASSERT_EQ(run_command(words(), folder_).exit_code, 0);
  const std::vector<std::string> run{"run", folder_ + "/small.onnx", "--db", db_, "--check", "interpreter"};
  const Result result = run_command(run, folder_);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("(0 compiled"));
  const Result top = run_command({"db", "top", "--db", db_}, folder_);
  EXPECT_THAT(top.out, HasSubstr("matmul"));
  const Result why =
      run_command({"db", "why", folder_ + "/small.onnx", "--db", db_, "--threads", "1"}, folder_);
  EXPECT_THAT(why.out, HasSubstr("threads"));
}

TEST_F(Sweep, DatabasesExportAndMerge) {
  ASSERT_EQ(testing_command::tune({folder_ + "/small.onnx"}, db_, 1, folder_).exit_code, 0);
  const Result merged = run_command({"db", "merge", db_, "--db", folder_ + "/other.db"}, folder_);
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  const Result lines = run_command({"db", "export", "--db", folder_ + "/other.db"}, folder_);
  EXPECT_THAT(lines.out, HasSubstr("\"record\":\"trial\""));
}

}  // namespace
}  // namespace sylvite::sweep_test
