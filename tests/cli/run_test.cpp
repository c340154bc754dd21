// A small model through the command: outputs, JSON, caches, and bad files of every kind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "frontend/onnx/tensor_io.h"
#include "tests/cli/command.h"

namespace sylvite::run_test {
namespace {

using testing::HasSubstr;
using testing_command::fresh_folder;
using testing_command::model_of_other_values;
using testing_command::model_with_operator;
using testing_command::Result;
using testing_command::run_command;
using testing_command::small_model;
using Words = std::vector<std::string>;

class Run : public testing::Test {
 protected:
  void SetUp() override { write_file(model_, small_model()); }

  [[nodiscard]] Result run(Words extra) const {
    Words words{"run", model_};
    words.insert(words.end(), extra.begin(), extra.end());
    return run_command(words, folder_);
  }
  void expect_fails(const Result& result, ErrorCode code, const std::string& text) const {
    EXPECT_EQ(result.exit_code, static_cast<int>(code)) << result.err;
    EXPECT_THAT(result.err, HasSubstr(text));
  }
  [[nodiscard]] nlohmann::json json_of(const std::string& name) const {
    return nlohmann::json::parse(read_file(folder_ + "/" + name));
  }

  const std::string folder_ = fresh_folder();
  const std::string model_ = folder_ + "/small.onnx";
};

TEST_F(Run, WritesOutputsThatAgreeWithBothOracles) {
  const Result first = run({"--output-dir", folder_ + "/out", "--check", "interpreter"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("agrees with interpreter"));
  const nlohmann::json outputs = json_of("out/outputs.json");
  ASSERT_EQ(outputs.size(), 1);
  EXPECT_EQ(outputs[0]["name"], "y");
  EXPECT_EQ(outputs[0]["file"], "0.npy");
  EXPECT_EQ(outputs[0]["dtype"], "float32");
  EXPECT_EQ(outputs[0]["shape"], (std::vector<int>{4, 16}));
  EXPECT_EQ(read_tensor(folder_ + "/out/0.npy").dims(), (Dims{4, 16}));
  EXPECT_EQ(run({"--check", "reference"}).exit_code, 0);
  EXPECT_EQ(run({"--check", folder_ + "/out"}).exit_code, 0);
  expect_fails(run({"--check", folder_ + "/out", "--seed", "1"}), ErrorCode::verify_failure,
               "output 0: element 0");
}

TEST_F(Run, TensorProtosGoOutAndIn) {
  const Words pb{"--output-dir", folder_ + "/out", "--output-format", "pb"};
  ASSERT_EQ(run(pb).exit_code, 0);
  EXPECT_EQ(read_tensor(folder_ + "/out/0.pb").dims(), (Dims{4, 16}));
  write_tensor(folder_ + "/x.pb", Tensor(DType::f32, {4, 64}), "x");
  EXPECT_EQ(run({"--input", "x=" + folder_ + "/x.pb"}).exit_code, 0);
}

TEST_F(Run, StringsSequencesAndOptionalsGoInAndOut) {
  write_file(model_, model_of_other_values());
  const HostValue words(StringTensor{{2}, {"a", "b"}});
  const HostValue parts(HostValue::Sequence{Tensor::vector_i64({1}), Tensor(DType::f32, {2, 3})});
  write_value(folder_ + "/x.pb", words, ValueKind::strings, "x");
  write_value(folder_ + "/parts.pb", parts, ValueKind::sequence, "parts");
  write_value(folder_ + "/maybe.pb", Tensor::scalar_f32(4), ValueKind::optional, "maybe");
  Words given{"--input", "x=" + folder_ + "/x.pb", "--input", "parts=" + folder_ + "/parts.pb"};
  expect_fails(run({}), ErrorCode::bad_input, "input 'x' is strings");
  expect_fails(run({"--input", "x=" + folder_ + "/parts.pb"}), ErrorCode::bad_model, "parts.pb");
  const std::string out = folder_ + "/out";
  for (const bool is_absent : {true, false}) {
    if (!is_absent) given.insert(given.end(), {"--input", "maybe=" + folder_ + "/maybe.pb"});
    Words all{"--output-dir", out, "--output-format", "pb", "--check", "interpreter"};
    all.insert(all.end(), given.begin(), given.end());
    const Result result = run(all);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("'aa' 'bb'"));
    EXPECT_EQ(read_value(out + "/0.pb", ValueKind::strings).strings().values,
              (std::vector<std::string>{"aa", "bb"}));
    EXPECT_EQ(read_value(out + "/1.pb", ValueKind::sequence).sequence().at(1).describe(), "f32[2,3]");
    EXPECT_EQ(read_value(out + "/2.pb", ValueKind::optional).is_absent(), is_absent);
  }
  const nlohmann::json outputs = json_of("out/outputs.json");
  EXPECT_EQ(outputs[0]["dtype"], "str");
  EXPECT_EQ(outputs[1]["sequence"][1]["shape"], (std::vector<int>{2, 3}));
  EXPECT_EQ(outputs[2]["shape"], nlohmann::json::array());
  given.insert(given.end(), {"--check", out});
  EXPECT_EQ(run(given).exit_code, 0);
}

TEST_F(Run, AnswersAtOnceAndCompilesForLater) {
  const Result first = run({"--output-dir", folder_ + "/out", "--json", folder_ + "/first.json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_LT(first.out.find("first elements"), first.out.find("first answer in"));
  const nlohmann::json at_once = json_of("first.json");
  EXPECT_GT(at_once["seconds"]["first_answer"], 0);
  EXPECT_GT(at_once["counters"]["compiled"], 0);
  EXPECT_TRUE(at_once["latency_ms"].is_null());
  const Result second = run({"--check", folder_ + "/out", "--json", folder_ + "/second.json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(json_of("second.json")["seconds"]["first_answer"], 0);
  EXPECT_EQ(json_of("second.json")["counters"]["compiled"], 0);
}

TEST_F(Run, WaitsForKernelsThatAreToBeCheckedOrAskedFor) {
  for (const Words& words : {Words{"--check", "interpreter"}, Words{"--first-answer", "best"}}) {
    Words all{"--json", folder_ + "/run.json", "--cache-dir", folder_ + "/" + words[0].substr(2)};
    all.insert(all.end(), words.begin(), words.end());
    ASSERT_EQ(run(all).exit_code, 0);
    EXPECT_EQ(json_of("run.json")["seconds"]["first_answer"], 0);
    EXPECT_GT(json_of("run.json")["counters"]["compiled"], 0);
    EXPECT_FALSE(json_of("run.json")["latency_ms"].is_null());
  }
}

TEST_F(Run, InputsAreChecked) {
  write_tensor(folder_ + "/shape.npy", Tensor(DType::f32, {4, 63}), "x");
  write_tensor(folder_ + "/dtype.npy", Tensor(DType::i64, {4, 64}), "x");
  expect_fails(run({"--input", "x=" + folder_ + "/shape.npy"}), ErrorCode::bad_input,
               "input 'x' is f32[4,63], the model wants f32[4,64]");
  expect_fails(run({"--input", "x=" + folder_ + "/dtype.npy"}), ErrorCode::bad_input, "i64[4,64]");
  expect_fails(run({"--input", "z=" + folder_ + "/shape.npy"}), ErrorCode::bad_usage, "no input 'z'");
  expect_fails(run({"--input", "x=" + folder_ + "/none.npy"}), ErrorCode::io_failure, "none.npy");
  write_tensor(folder_ + "/right.npy", Tensor(DType::f32, {4, 64}), "x");
  const std::string right = "x=" + folder_ + "/right.npy";
  expect_fails(run({"--input", right, "--input", right}), ErrorCode::bad_usage, "input 'x' is given twice");
  write_file(folder_ + "/junk.npy", "not numpy");
  expect_fails(run({"--input", "x=" + folder_ + "/junk.npy"}), ErrorCode::bad_model, "junk.npy");
}

TEST_F(Run, BadModelsAreRefusedByName) {
  const std::string bytes = small_model();
  const auto with = [&](const std::string& content) {
    write_file(model_, content);
    return run({});
  };
  expect_fails(with(bytes.substr(0, bytes.size() / 2)), ErrorCode::bad_model, "small.onnx");
  expect_fails(with(std::string(1000, '\xA7')), ErrorCode::bad_model, "small.onnx");
  expect_fails(with(""), ErrorCode::bad_model, "small.onnx");
  expect_fails(with(model_with_operator("Frobnicate")), ErrorCode::unsupported, "Frobnicate");
  expect_fails(run_command({"run", folder_ + "/none.onnx"}, folder_), ErrorCode::io_failure, "none.onnx");
  expect_fails(run_command({"run", folder_}, folder_), ErrorCode::io_failure, folder_);
}

TEST_F(Run, JsonHasEveryDocumentedKey) {
  ASSERT_EQ(run({"--json", folder_ + "/r.json", "--threads", "1", "--first-answer", "best"}).exit_code, 0);
  const nlohmann::json report = json_of("r.json");
  for (const char* key : {"schema", "versions", "machine", "mode", "model", "threads", "counters", "seconds",
                          "latency_ms", "peak_bytes"}) {
    EXPECT_TRUE(report.contains(key)) << key;
  }
  for (const char* key : {"kernels", "unique_kernels", "trials", "compiled", "loaded_from_cache"})
    EXPECT_TRUE(report["counters"][key].is_number_integer()) << key;
  for (const char* key : {"import", "compile", "tune", "ready", "first_answer"})
    EXPECT_TRUE(report["seconds"][key].is_number()) << key;
  for (const char* key : {"min", "median", "p90", "p99"})
    EXPECT_GT(report["latency_ms"][key].get<double>(), 0) << key;
  EXPECT_EQ(report["threads"], 1);
  EXPECT_EQ(report["mode"], "default");
}

TEST_F(Run, JsonOnStdoutIsAlone) {
  const Result result = run({"--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(nlohmann::json::accept(result.out)) << result.out;
}

TEST_F(Run, TheLogSaysWhatEachStageDid) {
  EXPECT_EQ(run({}).err, "");
  const std::string again = run({"--log-level", "info"}).err;
  for (const char* text : {"sylvite: info: import: ", "info: passes and lowering: ", "info: database '",
                           "info: objects: ", " 0 to compile", "info: program: "})
    EXPECT_THAT(again, HasSubstr(text));
  EXPECT_THAT(again, testing::Not(HasSubstr("debug")));
  const std::string first = run({"--log-level", "debug", "--cache-dir", folder_ + "/new"}).err;
  for (const char* text :
       {"sylvite: debug: setup: ", "debug: pass ", ": no winner: ", "is not in the cache", ": compiled in "})
    EXPECT_THAT(first, HasSubstr(text));
}

/// Every line of stderr, warnings too, is a JSON object under --progress jsonl.
TEST_F(Run, TheLogIsJsonLinesUnderThatProgress) {
  const Result result = testing_command::tune(
      {model_, "--progress", "jsonl", "--log-level", "debug", "--cache-dir", model_ + "/objects"},
      folder_ + "/trials.db", 1, folder_);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(result.err);
  std::set<std::string> levels;
  std::string messages;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    if (object.contains("log")) levels.insert(object["log"].get<std::string>());
    if (object.contains("log")) messages += object["message"].get<std::string>() + "\n";
  }
  EXPECT_EQ(levels, (std::set<std::string>{"debug", "info", "warning"}));
  for (const char* text : {"tuning: ", "trial: kernel ", "cannot be created"})
    EXPECT_THAT(messages, HasSubstr(text));
}

TEST_F(Run, TheSecondRunCompilesNothing) {
  ASSERT_EQ(run({"--json", folder_ + "/1.json"}).exit_code, 0);
  ASSERT_EQ(run({"--json", folder_ + "/2.json"}).exit_code, 0);
  const auto first = json_of("1.json")["counters"];
  const auto second = json_of("2.json")["counters"];
  EXPECT_GT(first["compiled"], 0);
  EXPECT_EQ(second["compiled"], 0);
  EXPECT_EQ(second["trials"], 0);
  EXPECT_EQ(second["loaded_from_cache"], first["unique_kernels"]);
}

TEST_F(Run, AnUnusableCacheIsAWarning) {
  const Result result = run({"--cache-dir", "/dev/null/objects", "--check", "interpreter"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("/dev/null/objects"));
}

TEST_F(Run, ADamagedObjectIsCompiledAgain) {
  ASSERT_EQ(run({"--cache-dir", folder_ + "/objects"}).exit_code, 0);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ + "/objects"))
    if (entry.is_regular_file()) std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
  const Result result = run({"--cache-dir", folder_ + "/objects", "--check", "interpreter"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.err, "");
}

TEST_F(Run, ACorruptDatabaseIsSetAside) {
  const std::string path = folder_ + "/trials.db";
  ASSERT_EQ(run({"--db", path}).exit_code, 0);
  std::string bytes = read_file(path);
  bytes.replace(0, 6, "XXXXXX");  // the mark of SQLite's files is damaged, ours is not
  write_file(path, bytes);
  const Result result = run({"--db", path, "--check", "interpreter"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("trials.db"));
  EXPECT_TRUE(std::filesystem::exists(path + ".corrupt-1"));
}

TEST_F(Run, AFullDiskIsAnError) {
  expect_fails(run({"--output-dir", "/dev/null/out"}), ErrorCode::io_failure, "/dev/null/out");
}

TEST_F(Run, ExplainShowsSchedules) {
  const Result result = run_command({"explain", model_, "--all", "--profile"}, folder_);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* text :
       {"graph small", "== launches ==", "schedule, as Halide C++", "== where time goes =="}) {
    EXPECT_THAT(result.out, HasSubstr(text));
  }
}

TEST_F(Run, BenchReportsLatencyAndProfile) {
  const Words words{
      "bench",     model_,   "--warmup",          "0",       "--duration",       "100ms", "--baseline",
      "reference", "--json", folder_ + "/b.json", "--trace", folder_ + "/t.json"};
  const Result result = run_command(words, folder_);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json report = json_of("b.json");
  EXPECT_GT(report["throughput_per_second"], 0);
  EXPECT_EQ(report["profile"].size(), report["counters"]["kernels"]);
  EXPECT_GT(report["baselines"][0]["latency_ms"]["median"], 0);
  EXPECT_FALSE(json_of("t.json").empty());
}

}  // namespace
}  // namespace sylvite::run_test
