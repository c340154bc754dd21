// What `explain` says by default, with its flags, on one screen, and as JSON.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "tests/cli/command.h"

namespace sylvite::explain_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing_command::Result;

class Explain : public testing::Test {
 protected:
  void SetUp() override { write_file(model_, testing_command::small_model()); }

  [[nodiscard]] Result explain(std::vector<std::string> words) const {
    words.insert(words.begin(), {"explain", model_, "--db", folder_ + "/trials.db", "--threads", "1"});
    return testing_command::run_command(words, folder_);
  }
  [[nodiscard]] std::string text(const std::vector<std::string>& words) const {
    const Result result = explain(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  }
  [[nodiscard]] nlohmann::json json(std::vector<std::string> words) const {
    words.insert(words.end(), {"--json", folder_ + "/report.json"});
    EXPECT_EQ(explain(words).exit_code, 0);
    return nlohmann::json::parse(read_file(folder_ + "/report.json"));
  }
  void tune() const {
    const Result tuned =
        testing_command::tune({model_, "--progress", "none"}, folder_ + "/trials.db", 6, folder_);
    ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  }

  const std::string folder_ = testing_command::fresh_folder();
  const std::string model_ = folder_ + "/small.onnx";
};

TEST_F(Explain, IsShortAndMoreIsBehindFlags) {
  const std::string by_default = text({});
  EXPECT_THAT(by_default, StartsWith("== launches =="));
  for (const char* part : {"== launches ==", "== kernels ==", "== memory =="})
    EXPECT_THAT(by_default, HasSubstr(part));
  for (const char* part : {"graph small", "== passes ==", "as Halide C++", "refused:"})
    EXPECT_THAT(by_default, Not(HasSubstr(part)));
  EXPECT_THAT(text({"--graph"}), HasSubstr("graph small"));
  EXPECT_THAT(text({"--passes"}), HasSubstr("== passes =="));
  EXPECT_THAT(text({"--schedules"}), HasSubstr("as Halide C++"));
  EXPECT_THAT(text({"--refusals"}), HasSubstr("refused:"));
  const std::string all = text({"--all"});
  for (const char* part : {"graph small", "== passes ==", "as Halide C++", "refused:"})
    EXPECT_THAT(all, HasSubstr(part));
}

TEST_F(Explain, OneKernelIsShownWithItsSchedule) {
  const nlohmann::json report = json({});
  const std::string id = report["kernels"].begin().key();
  const std::string shown = text({"--kernel", id});
  EXPECT_THAT(shown, HasSubstr("== kernel " + id));
  EXPECT_THAT(shown, HasSubstr("as Halide C++"));
  EXPECT_THAT(shown, Not(HasSubstr("== launches ==")));
  EXPECT_THAT(shown, Not(HasSubstr("refused:")));
}

TEST_F(Explain, JsonHasAllOfIt) {
  const nlohmann::json report = json({});
  EXPECT_THAT(report["graph"].get<std::string>(), HasSubstr("graph small"));
  EXPECT_EQ(report["launches"].size(), report["counters"]["kernels"]);
  EXPECT_EQ(report["kernels"].size(), report["counters"]["unique_kernels"]);
  for (const nlohmann::json& kernel : report["kernels"]) {
    EXPECT_GE(kernel["launches"], 1);
    EXPECT_EQ(kernel["origin"], "heuristic");
    EXPECT_EQ(kernel["tried"], 0);
    EXPECT_NE(kernel["schedule"], "");
    EXPECT_FALSE(kernel["refusals"].empty());
  }
}

TEST_F(Explain, TheSummaryFitsOnAScreen) {
  const std::string shown = text({"--summary"});
  EXPECT_LE(std::ranges::count(shown, '\n'), 45);
  for (const char* part :
       {"x: f32[4,64]", "ai.onnx 17", "Relu", "GFLOP/s", "of the time", "ms in kernels", "matmul"})
    EXPECT_THAT(shown, HasSubstr(part)) << part;
  EXPECT_THAT(explain({"--summary", "--graph"}).err, HasSubstr("--summary is one screen"));
  EXPECT_THAT(explain({"--measure-peaks"}).err, HasSubstr("--summary"));
}

TEST_F(Explain, TheSummaryOfADeepModelFitsToo) {
  write_file(model_, testing_command::small_model(40));
  const std::string shown = text({"--summary"});
  EXPECT_LE(std::ranges::count(shown, '\n'), 45);
  EXPECT_THAT(shown, HasSubstr("kernels more"));
}

TEST_F(Explain, TheSummarySaysHowFarKernelsAreFromTheLimit) {
  const nlohmann::json report = json({"--summary"});
  EXPECT_GT(report["peaks"]["operations"]["f32"], 1e9);
  EXPECT_GT(report["peaks"]["weight_rate"], 1e8);
  EXPECT_EQ(report["imported"]["inputs"][0]["type"], "f32[4,64]");
  EXPECT_EQ(report["imported"]["weight_elements"], 64 * 48 + 48 + 48 * 16);
  EXPECT_EQ(report["profile"].size(), report["counters"]["kernels"]);
  EXPECT_GT(report["run"]["bound_us"], 0);
  EXPECT_LT(report["run"]["bound_us"], report["run"]["kernels_us"]);
  for (const nlohmann::json& kernel : report["kernels"]) {
    EXPECT_GT(kernel["each_us"], 0);
    EXPECT_GT(kernel["bound_us"], 0);
    EXPECT_LT(kernel["bound_us"], kernel["each_us"]) << "faster than the machine can be";
    EXPECT_THAT(kernel["bound"].get<std::string>(), testing::AnyOf("compute", "L2", "weights"));
  }
  const nlohmann::json again = json({"--summary"});
  EXPECT_EQ(again["peaks"], report["peaks"]) << "measured once, and kept";
}

TEST_F(Explain, AfterTuningItSaysWhatWasBeaten) {
  tune();
  int tried = 0;
  const nlohmann::json report = json({"--summary"});
  for (const nlohmann::json& kernel : report["kernels"]) {
    tried += kernel["tried"].get<int>();
    EXPECT_THAT(kernel["origin"].get<std::string>(), testing::AnyOf("search", "heuristic", "untried"));
    if (kernel["origin"] == "search") EXPECT_GT(kernel["default_ratio"], 0);
  }
  EXPECT_GT(tried, 2);
  EXPECT_THAT(text({"--schedules"}), HasSubstr("others were tried"));
}

}  // namespace
}  // namespace sylvite::explain_test
