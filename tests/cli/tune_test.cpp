// Tuning that is interrupted.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "autotune/database.h"
#include "autotune/database_queries.h"
#include "base/files.h"
#include "tests/cli/command.h"

namespace sylvite {
namespace {

/// As Ctrl-C does: what was found is stored, and the exit code says so.
TEST(Tune, AnInterruptionStoresTheWinners) {
  const std::string folder = testing_command::fresh_folder();
  const std::string model = folder + "/small.onnx";
  const std::string db = folder + "/trials.db";
  write_file(model, testing_command::small_model());
  const int process = testing_command::start_command(
      {"tune", model, "--db", db, "--budget", "500s", "--threads", "1"}, folder);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (Database(db).trial_count() < 4 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ASSERT_EQ(::kill(process, SIGINT), 0);
  int status = 0;
  ::waitpid(process, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
  EXPECT_GT(database_stats(Database::for_questions(db)).winners, 0);
}

}  // namespace
}  // namespace sylvite
