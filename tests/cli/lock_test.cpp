// sylvite lock, and what --frozen makes of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.h"
#include "tests/cli/command.h"

namespace sylvite::lock_test {
namespace {

using testing::HasSubstr;
using testing_command::Result;
using testing_command::run_command;

class Lock : public testing::Test {
 protected:
  Lock()
      : folder_(testing_command::fresh_folder()),
        model_(folder_ + "/small.onnx"),
        lock_(folder_ + "/small.lock") {
    write_file(model_, testing_command::small_model(3));
  }
  /// A command with a cache and a database of its own.
  [[nodiscard]] Result run_in(const std::string& home, std::vector<std::string> words) const {
    make_folder(folder_ + "/" + home);
    words.insert(words.end(), {"--threads", "2"});
    return run_command(words, folder_ + "/" + home);
  }
  void make_lock() const {
    const Result made = run_in("here", {"lock", model_, "-o", lock_});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr("from heuristic"));
  }

  std::string folder_;
  std::string model_;
  std::string lock_;
};

/// Two clones with nothing but the model and the lock: every file is the same.
TEST_F(Lock, ExportsTheSameBytesEverywhere) {
  make_lock();
  const auto exported = [&](const std::string& home, std::vector<std::string> more) {
    const std::string output = folder_ + "/" + home + "/out";
    more.insert(more.begin(), {"export", model_, "--frozen", lock_, "--output", output, "--name", "small"});
    const Result result = run_in(home, more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("0 from the cache"));
    return output;
  };
  const std::string one = exported("one", {});
  const std::string other = exported("another_place", {"--set", "tune.compile_jobs=1"});
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(one)) {
    const std::string name = file.path().filename().string();
    EXPECT_TRUE(read_file(file.path().string()) == read_file((std::filesystem::path(other) / name).string()))
        << name;
    ++files;
  }
  EXPECT_GE(files, 5);
  for (const char* home : {"one", "another_place"})
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/" + home + "/sylvite/trials.db"));
}

TEST_F(Lock, IsTheSameTextWhenItIsMadeAgain) {
  make_lock();
  const std::string first = read_file(lock_);
  make_lock();
  EXPECT_EQ(read_file(lock_), first);
}

TEST_F(Lock, FreezesRunsAndBenchmarks) {
  make_lock();
  const Result run = run_in("there", {"run", model_, "--frozen", lock_, "--check", "reference"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run_in("there", {"explain", model_, "--schedules", "--frozen", lock_}).out,
              HasSubstr("schedule from lock"));
  const Result bench = run_in("there", {"bench", model_, "--frozen", lock_, "--baseline", "default",
                                        "--warmup", "1ms", "--duration", "10ms"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
}

TEST_F(Lock, EveryCombinationOfSizesIsInIt) {
  write_file(model_, testing_command::open_model());
  const Result made = run_in("here", {"lock", model_, "-o", lock_, "--dims", "batch=1..8@2+4"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Result compiled = run_in("there", {"compile", model_, "--frozen", lock_, "--dims", "batch=1..8@2+4"});
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  for (const char* dims : {"batch=2", "batch=4"}) {
    const Result fixed = run_in("there", {"run", model_, "--frozen", lock_, "--dims", dims});
    EXPECT_EQ(fixed.exit_code, 0) << dims << fixed.err;
  }
  const Result other = run_in("there", {"compile", model_, "--frozen", lock_, "--dims", "batch=3"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("is not in the lock " + lock_));
}

TEST_F(Lock, RefusesWhatMeasures) {
  make_lock();
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"tune", model_},
                                             {"lock", model_, "-o", lock_},
                                             {"db", "why", model_},
                                             {"bench", model_, "--baseline", "max-autotune"}}) {
    std::vector<std::string> frozen = words;
    frozen.insert(frozen.end(), {"--frozen", lock_});
    const Result result = run_in("there", frozen);
    EXPECT_EQ(result.exit_code, 2) << words.front();
    EXPECT_THAT(result.err, HasSubstr("which --frozen")) << words.front();
  }
  const Result lost = run_in("there", {"lock", model_});
  EXPECT_EQ(lost.exit_code, 2);
  EXPECT_THAT(lost.err, HasSubstr("-o FILE is missing"));
  EXPECT_EQ(run_in("there", {"lock", model_, "-o", folder_ + "/none/x.lock"}).exit_code, 6);
  EXPECT_EQ(run_in("there", {"run", model_, "--frozen", folder_ + "/none.lock"}).exit_code, 6);
  EXPECT_EQ(run_in("there", {"run", model_, "--frozen", model_}).exit_code, 2);
}

}  // namespace
}  // namespace sylvite::lock_test
