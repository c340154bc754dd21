#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "tests/cli/command.h"

namespace sylvite::info_test {
namespace {

using testing::HasSubstr;
using testing_command::Result;
using testing_command::run_command;

TEST(Info, SaysWhatAModelIs) {
  const std::string folder = testing_command::fresh_folder();
  const std::string path = folder + "/open.onnx";
  write_file(path, testing_command::open_model());
  const Result text = run_command({"info", path}, folder);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("x: f32[batch,64]"));
  EXPECT_THAT(text.out, HasSubstr("batch is 1.."));
  const Result json = run_command({"info", path, "--json", "-"}, folder);
  const nlohmann::json document = nlohmann::json::parse(json.out);
  EXPECT_EQ(document["inputs"][0]["type"], "f32[batch,64]");
  EXPECT_EQ(document["sizes"]["batch"]["low"], 1);
  EXPECT_EQ(document["opsets"].begin().key(), "ai.onnx");
  EXPECT_GT(document["weight_bytes"], 0);
  EXPECT_GT(document["nodes"], 0);
}

/// Names in a model may be any bytes; in JSON what is not UTF-8 becomes U+FFFD.
TEST(Info, NamesThatAreNoTextLeaveJsonWhole) {
  const std::string folder = testing_command::fresh_folder();
  const std::string path = folder + "/open.onnx";
  std::string model = testing_command::open_model();
  model.replace(model.find("batch"), 5, "b\xff\"ch");
  write_file(path, model);
  const std::string name = "b\xef\xbf\xbd\"ch";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"info", path, "--json", "-"},
        {"explain", path, "--graph", "--json", "-"},
        {"run", path, "--output-dir", folder + "/out", "--json", "-"},
        {"bench", path, "--duration", "0s", "--warmup", "0s", "--trace", folder + "/trace", "--json", "-"}}) {
    const Result result = run_command(words, folder);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(nlohmann::json::parse(result.out)["sizes"].contains(name)) << words[0] << result.out;
  }
}

}  // namespace
}  // namespace sylvite::info_test
