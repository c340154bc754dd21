#include "autotune/winner_index.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/autotune/sample_kernels.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::winner_index_test {
namespace {

const TuningKey key{"x86-64-linux", "test machine", 1, "halide 21", "f32"};

/// As if the file had been written earlier.
void age(const std::string& path, int seconds) {
  std::filesystem::last_write_time(path,
                                   std::filesystem::last_write_time(path) - std::chrono::seconds(seconds));
}

TEST(WinnerIndex, WithoutADatabaseThereIsNoWinner) {
  EXPECT_TRUE(WinnerIndex().lacks("", {sample_matmul()}));
}

TEST(WinnerIndex, KnowsNothingOfAFileThatMayHaveChanged) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/trials.db";
  WinnerIndex index;
  EXPECT_FALSE(index.lacks(path, {sample_matmul()}));
  {
    Database database(path);
    index.note(database);
  }
  EXPECT_FALSE(index.lacks(path, {sample_matmul()})) << "it was written just now";
  age(path, 100);
  index.note(Database(path));
  EXPECT_TRUE(index.lacks(path, {sample_matmul(), sample_pointwise()}));
  EXPECT_FALSE(index.lacks(path + "2", {sample_matmul()}));
  Database(path).record_winner(sample_matmul(), key, {Candidate(), 5, 0.5, "search", 60});
  EXPECT_FALSE(index.lacks(path, {sample_matmul()}));
  age(path, 50);
  index.note(Database(path));
  EXPECT_FALSE(index.lacks(path, {sample_pointwise(), sample_matmul()}));
  EXPECT_TRUE(index.lacks(path, {sample_pointwise()}));
  std::filesystem::remove(path);
  EXPECT_FALSE(index.lacks(path, {sample_pointwise()}));
}

}  // namespace
}  // namespace sylvite::winner_index_test
