// Tuning through the command: when it is interrupted, and what it says at its end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "autotune/database.h"
#include "autotune/database_queries.h"
#include "base/files.h"
#include "tests/cli/command.h"

namespace sylvite::tune_test {
namespace {

/// As Ctrl-C does: what was found is stored, and the exit code says so.
TEST(Tune, AnInterruptionStoresTheWinners) {
  const std::string folder = testing_command::fresh_folder();
  const std::string model = folder + "/small.onnx";
  const std::string db = folder + "/trials.db";
  write_file(model, testing_command::small_model());
  const int process = testing_command::start_command(
      {"tune", model, "--db", db, "--budget", "500s", "--threads", "1"}, folder);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(500);
  while (Database(db).trial_count() < 4 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(::kill(process, SIGINT), 0);
  int status = 0;
  ::waitpid(process, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  EXPECT_GT(database_stats(Database::for_questions(db)).winners, 0);
}

TEST(Tune, EndsWithTheGainOfTheModel) {
  const std::string folder = testing_command::fresh_folder();
  const std::string model = folder + "/small.onnx";
  write_file(model, testing_command::small_model());
  const testing_command::Result result = testing_command::tune(
      {model, "--progress", "jsonl", "--json", folder + "/report.json"}, folder + "/trials.db", 1, folder);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              testing::ContainsRegex("\n[0-9.e-]+ -> [0-9.e-]+ ms \\([0-9.]+x\\), [0-9]+ kernels, "
                                     "[0-9]+ better, [0-9]+ untried\n$"));
  std::string last;
  std::istringstream lines(result.err);
  for (std::string line; std::getline(lines, line);) last = line;
  const nlohmann::json done = nlohmann::json::parse(last);
  EXPECT_EQ(done["done"], "tuning");
  EXPECT_GT(done["trials"], 0);
  const nlohmann::json tuning = nlohmann::json::parse(read_file(folder + "/report.json"))["tuning"];
  EXPECT_GT(tuning["before_ms"], 0);
  EXPECT_GT(tuning["after_ms"], 0);
  EXPECT_EQ(tuning["kernels"], done["kernels"]);
}

}  // namespace
}  // namespace sylvite::tune_test
