#include "autotune/sweep.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "autotune/sqlite.h"
#include "base/error.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::sweep_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* small_sweep = R"(
[sweep]
models = a.onnx, sub/b.onnx
threads = 1, 2
budget = 5s
[import]
random_weights = 3
)";

std::string message_of(const std::string& text) {
  try {
    static_cast<void>(parse_sweep(text, "test", "/models"));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Sweep, IsACrossProduct) {
  SweepPlan plan = parse_sweep(small_sweep, "test", "/models");
  EXPECT_EQ(plan.name, "test");
  std::vector<std::string> items;
  items.reserve(plan.items.size());
  for (const SweepItem& item : plan.items) items.push_back(item.to_string());
  const std::string middle = " compile.mode=max-autotune compile.precision=f32 compile.threads=";
  const std::string end = " import.random_weights=3 tune.budget=5s";
  EXPECT_THAT(items, ElementsAre("/models/a.onnx" + middle + "1" + end, "/models/a.onnx" + middle + "2" + end,
                                 "/models/sub/b.onnx" + middle + "1" + end,
                                 "/models/sub/b.onnx" + middle + "2" + end));
}

TEST(Sweep, RefusesWrongFiles) {
  EXPECT_THAT(message_of("[sweep]\nthreads = 1\n"), HasSubstr("sweep.models"));
  EXPECT_THAT(message_of("[sweep]\nmodels = a\nthread = 1\n"), HasSubstr("sweep.threads"));
  EXPECT_THAT(message_of("[sweep]\nmodels = a\nthreads = many\n"), HasSubstr("compile.threads"));
  EXPECT_THAT(message_of("[sweep]\nmodels = a\nmodes = fastest\n"), HasSubstr("compile.mode"));
  EXPECT_THAT(message_of("[sweep]\nmodels = a\n[tune]\nbugdet = 1\n"), HasSubstr("tune.budget"));
  EXPECT_THAT(message_of("what is this\n"), HasSubstr("sweep test"));
  EXPECT_THROW(static_cast<void>(read_sweep("/no/such/file.ini")), IoError);
}

TEST(Sweep, AnErrorDoesNotEndIt) {
  Database database("");
  SweepPlan plan = parse_sweep(small_sweep, "test", "/models");
  bool broken = true;
  std::vector<std::size_t> ran;
  auto run = [&] {
    ran.clear();
    return run_sweep(plan, database, [&](std::size_t index, const SweepItem&) {
      ran.push_back(index);
      if (broken && index == 1) throw ModelError("no such {}", "model");
    });
  };
  SweepReport report = run();
  EXPECT_EQ(report.done, 3);
  EXPECT_EQ(report.failed, 1);
  EXPECT_THAT(report.errors, ElementsAre(HasSubstr("no such model")));
  EXPECT_EQ(report.code, ErrorCode::bad_model);
  EXPECT_EQ(sweep_status(plan, database).at(1).state, SweepState::failed);
  broken = false;
  report = run();
  EXPECT_THAT(ran, ElementsAre(1)) << "only what failed";
  EXPECT_EQ(report.skipped, 3);
  run();
  EXPECT_TRUE(ran.empty());
  reset_sweep(plan, database);
  run();
  EXPECT_EQ(ran.size(), 4);
}

TEST(Sweep, ProcessesShareItems) {
  TemporaryFolder folder;
  const std::string path = folder.file("tuning.db");
  const SweepPlan plan = parse_sweep(small_sweep, "test", "/models");
  Database database(path);
  SweepReport other;
  const SweepReport report = run_sweep(plan, database, [&](std::size_t index, const SweepItem&) {
    if (index != 1) return;
    const pid_t child = fork();  // while this process runs item 1: items 2 and 3 are left
    if (child == 0) {
      Database theirs(path);
      std::vector<std::size_t> ran;
      const SweepReport found = run_sweep(plan, theirs, [&](std::size_t i, const SweepItem&) {
        ran.push_back(i);
        if (i == 2) throw ModelError("no such {}", "model");
      });
      _exit(ran == std::vector<std::size_t>{2, 3} && found.skipped == 1 && found.elsewhere == 1 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  });
  EXPECT_EQ(report.done, 2);
  EXPECT_EQ(report.skipped, 1) << "item 3";
  EXPECT_EQ(report.elsewhere, 1) << "item 2, which failed there";
}

TEST(Sweep, GoesOnAfterAKill) {
  TemporaryFolder folder;
  std::string path = folder.file("tuning.db");
  {
    Database database(path);
  }
  SweepPlan plan = parse_sweep(small_sweep, "test", "/models");
  pid_t child = fork();
  if (child == 0) {
    Database database(path);
    run_sweep(plan, database, [](std::size_t index, const SweepItem&) {
      if (index == 2) kill(getpid(), SIGKILL);
    });
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  Database database(path);
  EXPECT_EQ(sweep_status(plan, database).at(2).state, SweepState::stopped);
  std::vector<std::size_t> ran;
  run_sweep(plan, database, [&](std::size_t index, const SweepItem&) {
    EXPECT_EQ(sweep_status(plan, database).at(index).state, SweepState::running);
    ran.push_back(index);
  });
  EXPECT_THAT(ran, ElementsAre(2, 3));
  database.connection().execute("PRAGMA ignore_check_constraints = ON");
  database.connection().execute("UPDATE sweep_items SET state = 'dome'");
  EXPECT_EQ(sweep_status(plan, database).at(0).state, SweepState::pending) << "a row that is damaged";
}

}  // namespace
}  // namespace sylvite::sweep_test
