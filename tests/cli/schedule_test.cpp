// sylvite schedule: shown, edited, tried and pinned.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "schedules/candidate.h"
#include "tests/cli/command.h"

namespace sylvite::schedule_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing_command::Result;

class ScheduleVerb : public testing::Test {
 protected:
  ScheduleVerb()
      : folder_(testing_command::fresh_folder()),
        model_(folder_ + "/small.onnx"),
        file_(folder_ + "/mine.txt") {
    write_file(model_, testing_command::small_model());
  }
  [[nodiscard]] Result run(std::vector<std::string> words) const {
    words.insert(words.end(), {"--threads", "1"});
    return testing_command::run_command(words, folder_);
  }
  [[nodiscard]] Result schedule(const std::string& action, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"schedule", action, model_};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  void expect_refused(const Result& result, int code, const std::string& text) const {
    EXPECT_EQ(result.exit_code, code) << result.out;
    EXPECT_THAT(result.err, HasSubstr(text));
  }
  /// The ids of the model's kernels.
  [[nodiscard]] std::vector<std::string> kernels() const {
    const std::string text = schedule("show").out;
    const std::string before = "\nkernel ";
    std::vector<std::string> ids;
    for (std::size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1))
      ids.push_back(text.substr(at + before.size(), 16));
    return ids;
  }
  [[nodiscard]] std::string first_kernel() const { return kernels().at(0); }
  /// The first kernel with its reference schedule, or with these statements.
  void write_plain(const std::string& statements = "") const {
    write_file(file_, "# by hand\nkernel " + first_kernel() + "\n  form: generic\n" + statements);
  }

  std::string folder_;
  std::string model_;
  std::string file_;
};

TEST_F(ScheduleVerb, ShowsWhatIsReadBack) {
  const Result all = schedule("show", {"-o", file_});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_EQ(read_file(file_), schedule("show").out);
  const Result check = schedule("check", {file_});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_THAT(check.out, ContainsRegex("kernel [0-9a-f]+ \\(matmul .*compiles and is right, .* us"));
  const std::string id = first_kernel();
  EXPECT_THAT(schedule("show", {"--kernel", id.substr(0, 6)}).out, HasSubstr("\nkernel " + id));
  EXPECT_THAT(schedule("show", {"--kernel", id, "--halide"}).out, HasSubstr("// kernel " + id));
  const std::string report = schedule("show", {"--kernel", id, "--json", "-"}).out;
  const nlohmann::json row = nlohmann::json::parse(report)["schedules"].at(0);
  EXPECT_EQ(row["kernel"], id);
  EXPECT_NO_THROW((void)Candidate::parse(row["candidate"].get<std::string>()));
}

TEST_F(ScheduleVerb, RacesAgainstNow) {
  write_plain();
  const Result race = schedule("race", {file_, "--samples", "5", "--json", folder_ + "/report.json"});
  ASSERT_EQ(race.exit_code, 0) << race.err;
  EXPECT_THAT(race.out, ContainsRegex("now \\(heuristic\\) +[0-9.]+ +5\n"));
  EXPECT_THAT(race.out, ContainsRegex("[0-9.]+ of the time of now, noise [0-9.]+: slower"));
  const nlohmann::json row = nlohmann::json::parse(read_file(folder_ + "/report.json"))["schedules"].at(0);
  EXPECT_EQ(row["kernel"], first_kernel());
  EXPECT_GT(row["ratio"], 1.5);
  EXPECT_GT(row["now_us"], 0);
  EXPECT_THAT(testing_command::run_command({"db", "trials", first_kernel()}, folder_).err,
              HasSubstr("no trials"))
      << "a race stores nothing";
  write_file(file_, schedule("show", {"--kernel", first_kernel()}).out);
  EXPECT_THAT(schedule("race", {file_, "--samples", "5"}).out, HasSubstr(": the same schedule\n"));
}

TEST_F(ScheduleVerb, PinsUntilUnpinned) {
  write_plain();
  const std::string id = first_kernel();
  const Result pin = schedule("pin", {file_});
  ASSERT_EQ(pin.exit_code, 0) << pin.err;
  EXPECT_THAT(pin.out, HasSubstr(": pinned\n"));
  EXPECT_THAT(schedule("show", {"--kernel", id}).out, HasSubstr("# from pinned"));
  const Result tune = run({"tune", model_, "--budget", "3s", "--progress", "none"});
  EXPECT_EQ(tune.exit_code, 0) << tune.err;
  EXPECT_THAT(tune.out, ContainsRegex(id + ".* generic +pinned\n"));
  EXPECT_EQ(run({"run", model_, "--check", "reference"}).exit_code, 0);
  EXPECT_THAT(schedule("unpin", {"--kernel", id}).out, HasSubstr("1 of 1 kernels were pinned"));
  EXPECT_THAT(schedule("show", {"--kernel", id}).out, HasSubstr("# from database"));
  EXPECT_THAT(schedule("unpin").out, HasSubstr("0 of"));
  const nlohmann::json unpinned =
      nlohmann::json::parse(schedule("unpin", {"--kernel", id, "--json", "-"}).out);
  EXPECT_EQ(unpinned["schedules"].at(0)["was_pinned"], false);
}

TEST_F(ScheduleVerb, PinsAllOrNone) {
  const std::vector<std::string> ids = kernels();
  ASSERT_GE(ids.size(), 2);
  ASSERT_NE(ids[0], ids[1]);
  const std::string good = "kernel " + ids[0] + "\n  form: generic\n";
  write_file(file_, good + "kernel " + ids[1] + "\n  form: generic\n  v0.unroll(d9);\n");
  expect_refused(schedule("pin", {file_}), 7, "no loop 'd9'");
  for (const std::string& id : {ids[0], ids[1]})
    EXPECT_THAT(testing_command::run_command({"db", "trials", id}, folder_).err, HasSubstr("no trials"));
  EXPECT_THAT(schedule("show").out, testing::Not(HasSubstr("# from pinned")));
  EXPECT_THAT(schedule("unpin").out, HasSubstr("0 of"));
  write_file(file_, good + "kernel " + ids[1] + "\n  form: generic\n");
  EXPECT_EQ(schedule("pin", {file_}).exit_code, 0);
  EXPECT_THAT(schedule("unpin").out, HasSubstr("2 of"));
}

TEST_F(ScheduleVerb, RefusesWhatIsWrong) {
  write_plain("  v0.unroll(d9);\n");
  expect_refused(schedule("check", {file_}), 7, "compile_error: ");
  expect_refused(schedule("pin", {file_}), 7, "no loop 'd9'");
  EXPECT_THAT(schedule("unpin").out, HasSubstr("0 of"));
  write_plain("  v0.unroll(\n");
  expect_refused(schedule("check", {file_}), 2, file_ + ", line 2: kernel ");
  write_file(file_, "kernel zzz\n  form: generic\n");
  expect_refused(schedule("race", {file_}), 2,
                 file_ + ": no kernel of the model has an id that begins with 'zzz'");
  write_file(file_, "# nothing\n");
  expect_refused(schedule("check", {file_}), 2, "has no schedule");
  expect_refused(schedule("check", {folder_ + "/none.txt"}), 6, "none.txt");
  expect_refused(schedule("check"), 2, "error: FILE is missing");
  expect_refused(schedule("race", {file_, "--samples", "1"}), 2, "--samples 1: expected 3 to 1000");
  expect_refused(schedule("show", {"--kernel", "zzz"}), 2, "--kernel: no kernel of the model");
  expect_refused(schedule("pni", {file_}), 2, "did you mean pin?");
}

TEST_F(ScheduleVerb, NamesTheNearestKernel) {
  std::string wrong = first_kernel();
  wrong[3] = wrong[3] == '0' ? '1' : '0';
  expect_refused(schedule("show", {"--kernel", wrong}), 2, "did you mean " + first_kernel() + "?");
}

}  // namespace
}  // namespace sylvite::schedule_test
