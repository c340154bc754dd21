// What the command says to wrong words: exit code, one message, and the nearest name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/knobs.h"
#include "tests/cli/command.h"

namespace sylvite::usage_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using testing_command::fresh_folder;
using testing_command::Result;
using testing_command::run_command;
using testing_command::small_model;

constexpr int usage_error = static_cast<int>(ErrorCode::bad_usage);

class Usage : public testing::Test {
 protected:
  void SetUp() override { write_file(model_, small_model()); }

  /// Runs and expects a usage error with this text in it.
  void expect_refused(const std::vector<std::string>& arguments, const std::string& text) {
    const Result result = run_command(arguments, folder_);
    EXPECT_EQ(result.exit_code, usage_error) << result.err;
    EXPECT_THAT(result.err, StartsWith("sylvite: error: "));
    EXPECT_THAT(result.err, HasSubstr(text));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }

  const std::string folder_ = fresh_folder();
  const std::string model_ = folder_ + "/small.onnx";
};

TEST_F(Usage, HelpOfEveryVerb) {
  EXPECT_THAT(run_command({"--help"}, folder_).out, HasSubstr("compile"));
  for (const char* verb : {"compile", "run", "bench", "tune", "sweep", "explain", "export", "db", "knobs"}) {
    const Result result = run_command({verb, "--help"}, folder_);
    EXPECT_EQ(result.exit_code, 0) << verb << result.err;
    EXPECT_THAT(result.out, StartsWith("usage: sylvite " + std::string(verb)));
  }
}

TEST_F(Usage, EveryKnobFlagIsAnOptionOfModelVerbs) {
  const std::string help = run_command({"compile", "--help"}, folder_).out;
  for (const Knob& knob : knob_table()) {
    if (knob.flag.empty()) continue;
    EXPECT_THAT(help, HasSubstr("--" + std::string(knob.flag)));
  }
}

TEST_F(Usage, VerbsAndOptionsAreSuggested) {
  expect_refused({}, "a verb is missing");
  expect_refused({"complie", model_}, "unknown verb 'complie'; did you mean compile?");
  expect_refused({"run", model_, "--outputdir", "x"}, "did you mean --output-dir?");
  expect_refused({"run", model_, "--cach-dir=x"}, "unknown option '--cach-dir', did you mean --cache-dir?");
  expect_refused({"db", "tpo"}, "did you mean top?");
  expect_refused({"bench", model_, "--baseline", "refrence"}, "did you mean reference?");
  expect_refused({"compile"}, "MODEL.onnx is missing");
  expect_refused({"compile", model_, "extra"}, "unexpected argument 'extra'");
  expect_refused({"compile", model_, "--threads"}, "threads");
  expect_refused({"explain", model_, "--check", "reference"}, "unknown option '--check'");
}

TEST_F(Usage, KeysAndValuesAreChecked) {
  expect_refused({"compile", model_, "--set", "tune.bugdet=3s"}, "did you mean tune.budget?");
  expect_refused({"compile", model_, "--set", "tune.budget"}, "expected NAME=VALUE");
  expect_refused({"compile", model_, "--threads", "two"}, "compile.threads = 'two'");
  expect_refused({"compile", model_, "--threads", "99999"}, "expected 0 to 1024");
  expect_refused({"compile", model_, "--dims", "batch=x"}, "--dims");
  expect_refused({"compile", model_, "--mode", "max-autotun"}, "did you mean max-autotune?");
  expect_refused({"bench", model_, "--duration", "soon"}, "--duration = 'soon'");
  expect_refused({"run", model_, "--output-format", "txt"}, "expected npy or pb");
  write_file(folder_ + "/bad.ini", "[tune]\nbudgets = 1\n");
  expect_refused({"compile", model_, "--config", folder_ + "/bad.ini"},
                 "bad.ini: unknown key 'tune.budgets'");
}

TEST_F(Usage, WhatMatchesNothingIsSaid) {
  expect_refused({"explain", model_, "--kernel", "zzz"}, "'zzz'");
  const std::string db = folder_ + "/trials.db";
  ASSERT_EQ(run_command({"compile", model_, "--db", db}, folder_).exit_code, 0);
  expect_refused({"db", "trials", "zzz", "--db", db}, "'zzz'");
  expect_refused({"db", "merge", db, "--db", db}, "merged into itself");
}

TEST_F(Usage, ForgettingNeedsACondition) {
  const std::string db = folder_ + "/trials.db";
  expect_refused({"db", "forget", "--db", db}, "say what to forget");
  expect_refused({"db", "forget", "--verdict", "bad", "--db", db}, "--verdict bad");
  expect_refused({"db", "forget", "--before", "soon", "--db", db}, "--before soon");
  EXPECT_EQ(run_command({"db", "forget", "abc", "--db", db}, folder_).exit_code,
            static_cast<int>(ErrorCode::io_failure));
  ASSERT_EQ(testing_command::tune({model_}, db, 1, folder_).exit_code, 0);
  const auto forgotten = [&](const std::vector<std::string>& what) {
    std::vector<std::string> words{"db", "forget", "--db", db};
    words.insert(words.end(), what.begin(), what.end());
    return run_command(words, folder_).out;
  };
  const std::string nothing = "0 trials, 0 winners and 0 races forgotten\n";
  EXPECT_EQ(forgotten({"--before", "2001"}), nothing);
  EXPECT_EQ(forgotten({"--verdict", "run_timeout"}), nothing);
  EXPECT_EQ(forgotten({"zzz"}), nothing);
  EXPECT_NE(forgotten({"--verdict", "ok", "--before", "9999"}), nothing);
  EXPECT_EQ(forgotten({"--verdict", "ok"}), nothing);
}

TEST_F(Usage, TheCacheIsListedAndPruned) {
  const std::string dir = folder_ + "/objects";
  ASSERT_EQ(run_command({"compile", model_, "--set", "cache.dir=" + dir}, folder_).exit_code, 0);
  expect_refused({"cache", "prune", "--to", "much", "--dir", dir}, "--to = 'much': expected a size");
  expect_refused({"cache", "prnue"}, "prune");
  const Result missing = run_command({"cache", "size", "--dir", dir + "s"}, folder_);
  EXPECT_EQ(missing.exit_code, static_cast<int>(ErrorCode::io_failure)) << missing.out;
  EXPECT_THAT(missing.err, HasSubstr("no folder " + dir + "s"));
  EXPECT_THAT(run_command({"cache", "list", "--dir", dir}, folder_).out, HasSubstr("sylvite_"));
  const nlohmann::json list =
      nlohmann::json::parse(run_command({"cache", "list", "--dir", dir, "--json", "-"}, folder_).out);
  EXPECT_EQ(list["folder"], dir);
  EXPECT_GE(list["bytes"], list["objects"].at(0)["bytes"]);
  EXPECT_THAT(run_command({"cache", "prune", "--older-than", "30d", "--dir", dir}, folder_).out,
              HasSubstr("0 objects removed"));
  EXPECT_THAT(run_command({"cache", "prune", "--dir", dir}, folder_).out, HasSubstr("0 objects removed"))
      << "far below cache.limit";
  const std::string config = folder_ + "/small.ini";
  write_file(config, "[cache]\nlimit = 0\ndir = " + dir + "\n");
  EXPECT_THAT(run_command({"cache", "prune", "--config", config}, folder_).out, HasSubstr("; 0 left"));
  ASSERT_EQ(run_command({"compile", model_, "--config", config}, folder_).exit_code, 0);
  EXPECT_THAT(run_command({"cache", "list", "--dir", dir}, folder_).out, HasSubstr("sylvite_"))
      << "what a program uses stays, however small the limit";
  EXPECT_THAT(run_command({"cache", "prune", "--to", "0", "--dir", dir}, folder_).out, HasSubstr("; 0 left"));
  EXPECT_THAT(run_command({"cache", "size", "--dir", dir}, folder_).out, HasSubstr(": 0 objects"));
}

TEST_F(Usage, AFolderThatCannotBeWrittenIsNamed) {
  const Result result = run_command({"explain", model_, "--dump-passes", "/proc/x"}, folder_);
  EXPECT_EQ(result.exit_code, static_cast<int>(ErrorCode::io_failure));
  EXPECT_THAT(result.err, HasSubstr("/proc/x"));
}

TEST_F(Usage, QuestionsCreateNoDatabase) {
  const std::string db = folder_ + "/no/such.db";
  for (const char* action : {"top", "stats", "export"}) {
    const Result result = run_command({"db", action, "--db", db}, folder_);
    EXPECT_EQ(result.exit_code, static_cast<int>(ErrorCode::io_failure)) << action;
    EXPECT_THAT(result.err, HasSubstr(db));
  }
  EXPECT_EQ(run_command({"db", "stats", "--db", model_}, folder_).exit_code,
            static_cast<int>(ErrorCode::io_failure));
  EXPECT_EQ(read_file(model_), small_model()) << "a file of the user is left alone";
  EXPECT_EQ(run_command({"compile", model_, "--db", model_}, folder_).exit_code, 0);
  EXPECT_EQ(read_file(model_), small_model());
}

/// The exit code of `sylvite ARGUMENTS REDIRECTIONS` in a shell.
int exit_code_in_shell(const std::string& words) {
  const int status = std::system(("exec " SYLVITE_COMMAND " " + words).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_F(Usage, AnErrorThatCannotBeSaidHasItsCode) {
  EXPECT_EQ(exit_code_in_shell("run " + folder_ + "/none.onnx 2> /dev/full"),
            static_cast<int>(ErrorCode::io_failure));
  EXPECT_EQ(exit_code_in_shell("frobnicate 2>&-"), usage_error);
}

// Else the first files that are opened take their numbers, and what is printed goes into them.
TEST_F(Usage, ClosedStandardDescriptorsAreNotTakenByFiles) {
  const std::string report = folder_ + "/report.json";
  const std::string words = "run " + model_ + " --cache-dir " + folder_ + "/cache --json " + report;
  EXPECT_EQ(exit_code_in_shell(words + " <&- >&- 2>&-"), static_cast<int>(ErrorCode::io_failure));
  EXPECT_EQ(exit_code_in_shell(words + " > /dev/null <&- 2>&-"), 0);
  EXPECT_TRUE(nlohmann::json::accept(read_file(report)));
}

TEST_F(Usage, APrecisionWithoutEffectIsSaid) {
  const auto warned = [&](const std::string& precision) {
    const Result result = run_command({"compile", model_, "--precision", precision}, folder_);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LE(std::ranges::count(result.err, '\n'), 1) << result.err;
    return result.err;
  };
  EXPECT_THAT(warned("tf32"), HasSubstr("tf32: processors have no products of TF32"));
  EXPECT_EQ(warned("int8-dynamic"), "") << "one of its products is large enough";
  write_file(model_, small_model(0));
  EXPECT_THAT(warned("int8-dynamic"), HasSubstr("int8-dynamic: no product of the model"));
}

TEST_F(Usage, DumpConfigReadsBack) {
  const std::string ini = folder_ + "/all.ini";
  const Result first = run_command({"compile", model_, "--budget", "7s", "--dump-config", ini}, folder_);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(read_file(ini), HasSubstr("budget = 7s"));
  const Result second = run_command({"compile", model_, "--config", ini}, folder_);
  EXPECT_EQ(second.exit_code, 0) << second.err;
}

}  // namespace
}  // namespace sylvite::usage_test
