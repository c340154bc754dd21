// Models whose sizes are open, through the command.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/files.h"
#include "frontend/onnx/tensor_io.h"
#include "tests/cli/command.h"

namespace sylvite::sizes_test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing_command::fresh_folder;
using testing_command::open_model;
using testing_command::Result;
using testing_command::run_command;

class SizesCommand : public testing::Test {
 protected:
  void SetUp() override { write_file(model_, open_model()); }

  [[nodiscard]] Result run(const std::string& verb, std::vector<std::string> extra) const {
    std::vector<std::string> words{verb, model_};
    words.insert(words.end(), extra.begin(), extra.end());
    return run_command(words, folder_);
  }
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(read_file(json_)); }

  const std::string folder_ = fresh_folder();
  const std::string model_ = folder_ + "/open.onnx";
  const std::string json_ = folder_ + "/r.json";
};

TEST_F(SizesCommand, WhatIsAssumedIsSaid) {
  const Result result = run("run", {"--check", "interpreter", "--json", json_});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "sylvite: warning: batch is 1.. (fast at 1); give --dims to choose\n");
  EXPECT_THAT(result.out, HasSubstr("f32[1,16]"));
  EXPECT_EQ(json()["sizes"]["batch"], 1);
  EXPECT_THAT(run("run", {"--dims", "batch=1..8"}).err, IsEmpty());
}

TEST_F(SizesCommand, RunTakesSizesFromInputs) {
  write_tensor(folder_ + "/x.npy", Tensor(DType::f32, {7, 64}), "x");
  const std::string input = "x=" + folder_ + "/x.npy";
  const Result result = run("run", {"--input", input, "--check", "f32"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_THAT(result.out, HasSubstr("f32[7,16]"));
  const Result refused = run("run", {"--input", input, "--dims", "batch=1..4"});
  EXPECT_EQ(refused.exit_code, static_cast<int>(ErrorCode::bad_input));
  EXPECT_THAT(refused.err, HasSubstr("input 0 'x': dimension 0 (batch) is 7; it may be 1 to 4"));
}

TEST_F(SizesCommand, BadSizesAreOneMessage) {
  const std::pair<const char*, const char*> rows[] = {
      {"batch=4..1", "import.dims (--dims): 'batch=4..1': the range ends at 1, before it begins at 4"},
      {"batch=0", "0 is not a size"},
      {"batch=1..4@5", "5 after '@' is not in the range 1..4"},
      {"batch=1..4,batch=2", "'batch' is given twice"},
      {"bacth=2", "the model has no dimension 'bacth'; did you mean batch? (its dimensions: batch)"},
      {"batch=1..99999999", "input 'x' has 6.4e+09 elements at the largest sizes given"},
  };
  for (const auto& [dims, message] : rows) {
    const Result result = run("run", {"--dims", dims});
    EXPECT_EQ(result.exit_code, static_cast<int>(ErrorCode::bad_usage)) << dims;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
}

TEST_F(SizesCommand, BenchHasARowForEachSize) {
  const Result result = run("bench", {"--dims", "batch=1..8@2+5", "--warmup", "1ms", "--duration", "5ms",
                                      "--check", "interpreter", "--baseline", "reference", "--json", json_});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("batch=2, default"));
  EXPECT_THAT(result.out, HasSubstr("batch=5, reference (baseline)"));
  EXPECT_EQ(json()["at_sizes"].size(), 2U);
  EXPECT_EQ(json()["at_sizes"][1]["sizes"]["batch"], 5);
}

TEST_F(SizesCommand, CompileAndTuneCoverEverySize) {
  const Result tuned = run("tune", {"--dims", "batch=1..8@2+5", "--budget", "2s", "--json", json_});
  ASSERT_EQ(tuned.exit_code, 0) << tuned.err;
  EXPECT_THAT(tuned.out, HasSubstr("batch=2: open: "));
  EXPECT_THAT(tuned.out, HasSubstr("batch=5: open: "));
  EXPECT_EQ(json()["counters"]["programs"], 2);
  ASSERT_EQ(run("compile", {"--dims", "batch=1..8@2+5", "--json", json_}).exit_code, 0);
  EXPECT_EQ(json()["counters"]["compiled"], 0) << "the winners of both are in the cache";
  EXPECT_EQ(json()["counters"]["programs"], 2);
}

TEST_F(SizesCommand, ExplainNamesRanges) {
  const Result result = run("explain", {"--dims", "batch=2..8%2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("== sizes =="));
  EXPECT_THAT(result.out, HasSubstr("2..8%2@2"));
  EXPECT_THAT(result.out, HasSubstr("x[0]"));
}

TEST_F(SizesCommand, ExportTakesRangesAndNumbers) {
  const Result opened = run("export", {"--output", folder_ + "/out", "--dims", "batch=1..8@4", "--name",
                                       "opened", "--json", json_});
  EXPECT_EQ(opened.exit_code, 0) << opened.err;
  EXPECT_THAT(opened.out, HasSubstr(" programs"));
  EXPECT_THAT(read_file(folder_ + "/out/opened.h"),
              HasSubstr("opened_run(sylvite_model* model, const int64_t* sizes,"));
  EXPECT_GE(json()["export"]["programs"], 2);
  EXPECT_EQ(run("export", {"--output", folder_ + "/fixed", "--dims", "batch=4", "--name", "fixed"}).exit_code,
            0);
  EXPECT_THAT(read_file(folder_ + "/fixed/fixed.h"),
              HasSubstr("fixed_run(sylvite_model* model, const void* const*"));
}

}  // namespace
}  // namespace sylvite::sizes_test
