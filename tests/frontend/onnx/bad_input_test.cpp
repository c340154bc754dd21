// Malformed and hostile models: always a typed error, soon, and in bounded memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/support/temporary_folder.h"

namespace sylvite::bad_input_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// What the importer says to a model; "" when it takes it.
template <typename Expected>
std::string refusal(const onnx::ModelProto& model, const std::string& folder = "",
                    const ImportOptions& options = {}) {
  try {
    (void)import_onnx_bytes(model.SerializeAsString(), folder, options);
  } catch (const Expected& error) {
    return error.what();
  }
  return "";
}

/// Imports bytes that may be a model or not. Fails the test when the importer blames itself.
std::optional<ErrorCode> import_code(std::string_view bytes) {
  try {
    (void)import_onnx_bytes(bytes, "");
    return std::nullopt;
  } catch (const Error& error) {
    EXPECT_NE(error.code(), ErrorCode::internal) << error.what();
    return error.code();
  }
}

TEST(OnnxBadInputTest, EveryTruncationIsATypedError) {
  const std::string bytes = small_model().SerializeAsString();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // What is cut off may be a field with a default, such as the opset.
    (void)import_code(std::string_view(bytes).substr(0, size));
  }
}

TEST(OnnxBadInputTest, MutatedBytesAreATypedErrorOrAModel) {
  const std::string bytes = small_model().SerializeAsString();
  std::mt19937 random(1);
  for (int round = 0; round < 4000; ++round) {
    std::string mutated = bytes;
    for (int i = 0; i <= round % 4; ++i) mutated[random() % mutated.size()] = static_cast<char>(random());
    (void)import_code(mutated);
  }
}

TEST(OnnxBadInputTest, AnglesOfARotationHaveAnAxisForEachPair) {
  for (const std::vector<std::int64_t>& dims : {std::vector<std::int64_t>{}, {2}, {5, 3}}) {
    onnx::ModelProto model = empty_model(23);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "x", {1, 2, 5, 4});
    for (const char* name : {"cosine", "sine"}) add_input(graph, name, dims);
    add_node(graph, "RotaryEmbedding", {"x", "cosine", "sine"}, {"y"});
    add_output(graph, "y");
    EXPECT_THAT(refusal<ModelError>(model), HasSubstr("angles have the shape")) << dims.size();
  }
}

TEST(OnnxBadInputTest, RandomBytesAreRefused) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    std::string bytes(random() % 300, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_TRUE(import_code(bytes).has_value());
  }
}

TEST(OnnxBadInputTest, DeeplyNestedMessagesAreRefused) {
  std::string bytes;
  for (int depth = 0; depth < 10'000; ++depth) {
    std::string outer = "\x32";  // a graph attribute in an attribute in a node in a graph: any field will do
    for (std::size_t size = bytes.size();; size >>= 7) {
      outer += static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0));
      if (size <= 0x7f) break;
    }
    bytes.insert(0, outer);
  }
  EXPECT_EQ(import_code("\x3a" + bytes), ErrorCode::bad_model);
}

TEST(OnnxBadInputTest, NamesTheNodesOfACycle) {
  onnx::ModelProto model = small_model();
  model.mutable_graph()->mutable_node(0)->set_input(0, "c");
  EXPECT_THAT(refusal<ModelError>(model), HasSubstr("cycle"));
}

TEST(OnnxBadInputTest, NamesWhoReadsWhatNobodyProduces) {
  onnx::ModelProto model = small_model();
  model.mutable_graph()->mutable_node(1)->set_input(1, "nothing");
  EXPECT_THAT(refusal<ModelError>(model), AllOf(HasSubstr("make_b"), HasSubstr("nothing")));
}

TEST(OnnxBadInputTest, NamesASecondProducer) {
  onnx::ModelProto model = small_model();
  add_node(*model.mutable_graph(), "Relu", {"x"}, {"b"});
  EXPECT_THAT(refusal<ModelError>(model), AllOf(HasSubstr("make_b"), HasSubstr("already")));
}

TEST(OnnxBadInputTest, NamesAnUnknownOperatorWithDomainAndOpset) {
  onnx::ModelProto model = small_model();
  model.mutable_graph()->mutable_node(0)->set_op_type("Frobnicate");
  EXPECT_THAT(refusal<UnsupportedError>(model),
              AllOf(HasSubstr("make_a"), HasSubstr("Frobnicate"), HasSubstr("ai.onnx"), HasSubstr("18")));
}

TEST(OnnxBadInputTest, NamesTheOpsetsThatAreSupported) {
  onnx::ModelProto model = small_model();
  for (const int opset : {oldest_opset - 1, newest_opset + 1, 99}) {
    model.mutable_opset_import(0)->set_version(opset);
    EXPECT_THAT(refusal<UnsupportedError>(model),
                AllOf(HasSubstr(fmt::format("opset {};", opset)),
                      HasSubstr(fmt::format("{} to {} are supported", oldest_opset, newest_opset))));
  }
  model.mutable_opset_import(0)->set_version(newest_opset);
  EXPECT_EQ(refusal<Error>(model), "");
  EXPECT_THAT(read_file(std::string(SYLVITE_EXAMPLES) + "/../README.md"),
              HasSubstr(fmt::format("opsets {} to {}", oldest_opset, newest_opset)));
}

TEST(OnnxBadInputTest, SaysOfEveryLimitThatTheModelIsTooLarge) {
  ImportOptions options;
  options.max_nodes = 2;
  const std::string chosen = refusal<UnsupportedError>(small_model(), "", options);
  EXPECT_THAT(chosen, HasSubstr("needs more than 2 operations once its functions are inlined"));
  onnx::ModelProto model = empty_model(18);
  add_input(*model.mutable_graph(), "x", {2});
  add_output(*model.mutable_graph(), "y");
  std::string value = "x";
  for (int i = 0; i < 30'001; ++i) {
    const std::string next = i == 30'000 ? "y" : "v" + std::to_string(i);
    add_node(*model.mutable_graph(), "Relu", {value}, {next});
    value = next;
  }
  EXPECT_THAT(refusal<UnsupportedError>(model),
              HasSubstr("needs more than 30000 operations once its functions are inlined"));
}

TEST(OnnxBadInputTest, RefusesAnOutputNobodyProduces) {
  onnx::ModelProto model = small_model();
  model.mutable_graph()->mutable_output(0)->set_name("z");
  EXPECT_THAT(refusal<ModelError>(model), HasSubstr("'z'"));
}

TEST(OnnxBadInputTest, ChecksDimsBeforeAllocating) {
  for (const std::int64_t extent : {std::int64_t{-5}, std::int64_t{1} << 61, std::int64_t{1} << 40}) {
    onnx::ModelProto model = small_model();
    onnx::TensorProto& bias = *model.mutable_graph()->mutable_initializer(0);
    bias.set_dims(0, extent);
    bias.add_dims(8);
    EXPECT_THAT(refusal<Error>(model), HasSubstr("bias")) << extent;
  }
}

TEST(OnnxBadInputTest, RefusesDataThatDoesNotFillItsDims) {
  onnx::ModelProto model = small_model();
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, 2);
  EXPECT_THAT(refusal<ModelError>(model), HasSubstr("bias"));
}

TEST(OnnxBadInputTest, RefusesInputsOfAbsurdSize) {
  onnx::ModelProto model = empty_model(18);
  add_input(*model.mutable_graph(), "x", {1 << 30, 1 << 30});
  add_output(*model.mutable_graph(), "y");
  add_node(*model.mutable_graph(), "Relu", {"x"}, {"y"});
  EXPECT_THAT(refusal<Error>(model), HasSubstr("'x'"));
}

TEST(OnnxBadInputTest, DoesNotEvaluateConstantsOfAbsurdSize) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1});
  add_output(graph, "y");
  add_integers(graph, "shape", {1 << 20, 1 << 14});
  std::string last = "a0";
  add_node(graph, "ConstantOfShape", {"shape"}, {last});
  for (int i = 1; i < 20; ++i) {
    const std::string next = "a" + std::to_string(i);
    add_node(graph, "Exp", {last}, {next});
    last = next;
  }
  add_node(graph, "Add", {last, "x"}, {"y"});
  const std::clock_t start = std::clock();  // of the processor
  (void)refusal<Error>(model);
  EXPECT_LT(std::clock() - start, 2 * CLOCKS_PER_SEC);
}

/// Calls nested so that every function calls the next twice.
onnx::ModelProto exploding_functions(int depth) {
  onnx::ModelProto model = empty_model(18);
  add_input(*model.mutable_graph(), "x", {1});
  add_output(*model.mutable_graph(), "y");
  add_node(*model.mutable_graph(), "f0", {"x"}, {"y"}).set_domain("local");
  for (int i = 0; i < depth; ++i) {
    onnx::FunctionProto& function = *model.add_functions();
    function.set_domain("local");
    function.set_name("f" + std::to_string(i));
    function.add_input("a");
    function.add_output("c");
    const bool is_last = i + 1 == depth;
    for (const auto& [from, to] : {std::pair("a", "b"), std::pair("b", "c")}) {
      onnx::NodeProto& node = *function.add_node();
      node.set_op_type(is_last ? "Relu" : "f" + std::to_string(i + 1));
      if (!is_last) node.set_domain("local");
      node.add_input(from);
      node.add_output(to);
    }
  }
  return model;
}

TEST(OnnxBadInputTest, BoundsWhatFunctionsUnfoldTo) {
  EXPECT_EQ(refusal<Error>(exploding_functions(5)), "");
  EXPECT_THAT(refusal<UnsupportedError>(exploding_functions(40)), HasSubstr("operations once"));
}

TEST(OnnxBadInputTest, RefusesRecursion) {
  onnx::ModelProto model = exploding_functions(3);
  model.mutable_functions(2)->mutable_node(0)->set_op_type("f0");
  model.mutable_functions(2)->mutable_node(0)->set_domain("local");
  EXPECT_THAT(refusal<ModelError>(model), HasSubstr("calls itself"));
}

TEST(OnnxBadInputTest, BoundsLoops) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1});
  add_output(graph, "y");
  add_integers(graph, "trips", {std::int64_t{1} << 60});
  onnx::NodeProto& loop = add_node(graph, "Loop", {"trips", "", "x"}, {"y"});
  onnx::GraphProto& body = set_graph(loop, "body");
  add_input(body, "i", {}, onnx::TensorProto::INT64);
  add_input(body, "go", {}, onnx::TensorProto::BOOL);
  add_input(body, "state", {1});
  add_output(body, "go");
  add_output(body, "state");
  EXPECT_THAT(refusal<UnsupportedError>(model), HasSubstr("operations once"));
}

class ExternalDataTest : public testing::Test {
 protected:
  ExternalDataTest() {
    fs::create_directory(root_ / "model");
    write(root_ / "secret.bin");
    write(root_ / "model" / "good.bin");
  }

  static void write(const fs::path& path) {
    const float values[] = {1, 2, 3, 4};
    std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof(values));
  }

  static onnx::ModelProto model(const std::string& location,
                                const std::function<void(onnx::TensorProto&)>& change = {}) {
    onnx::ModelProto model = empty_model(18);
    add_input(*model.mutable_graph(), "x", {4});
    add_output(*model.mutable_graph(), "y");
    onnx::TensorProto& tensor = add_external(*model.mutable_graph(), "w", location);
    if (change) change(tensor);
    add_node(*model.mutable_graph(), "Add", {"x", "w"}, {"y"});
    return model;
  }
  [[nodiscard]] std::string folder() const { return (root_ / "model").string(); }

  TemporaryFolder temporary_;
  const fs::path root_ = temporary_.path();
};

TEST_F(ExternalDataTest, ReadsAFileOfTheFolder) {
  EXPECT_EQ(refusal<Error>(model("good.bin"), folder()), "");
}

TEST_F(ExternalDataTest, RefusesWhatLeavesTheFolder) {
  for (const std::string& location : {std::string("../secret.bin"), (root_ / "secret.bin").string(),
                                      std::string("sub/../../secret.bin"), std::string("./../secret.bin")}) {
    EXPECT_THAT(refusal<ModelError>(model(location), folder()), HasSubstr("'w'")) << location;
  }
}

TEST_F(ExternalDataTest, RefusesLinks) {
  fs::create_symlink(root_ / "secret.bin", root_ / "model" / "link.bin");
  fs::create_directory_symlink(root_, root_ / "model" / "up");
  fs::create_hard_link(root_ / "secret.bin", root_ / "model" / "hard.bin");
  for (const std::string location : {"link.bin", "up/secret.bin", "hard.bin"})
    EXPECT_THAT(refusal<ModelError>(model(location), folder()), HasSubstr("'w'")) << location;
}

TEST_F(ExternalDataTest, FollowsLinksWhenAsked) {
  fs::create_symlink(root_ / "secret.bin", root_ / "model" / "link.bin");
  fs::create_hard_link(root_ / "secret.bin", root_ / "model" / "hard.bin");
  ImportOptions options;
  options.follow_links = true;
  EXPECT_EQ(refusal<Error>(model("link.bin"), folder(), options), "");
  EXPECT_EQ(refusal<Error>(model("hard.bin"), folder(), options), "");
  EXPECT_THAT(refusal<ModelError>(model("link.bin"), folder()), HasSubstr("import.follow_links=true"));
}

/// Caches of downloads keep every file of a model as a link into one folder.
TEST_F(ExternalDataTest, FollowsLinksBesideAModelThatIsOne) {
  fs::create_directory(root_ / "blobs");
  write(root_ / "blobs" / "1a");
  std::ofstream(root_ / "blobs" / "2b", std::ios::binary) << model("data.bin").SerializeAsString();
  std::ofstream(root_ / "blobs" / "3c", std::ios::binary) << model("secret.bin").SerializeAsString();
  fs::create_symlink("../blobs/1a", root_ / "model" / "data.bin");
  fs::create_symlink("../secret.bin", root_ / "model" / "secret.bin");
  fs::create_symlink("../blobs/2b", root_ / "model" / "model.onnx");
  fs::create_symlink("../blobs/3c", root_ / "model" / "thief.onnx");
  EXPECT_NO_THROW((void)import_onnx((root_ / "model" / "model.onnx").string()));
  EXPECT_THROW((void)import_onnx((root_ / "model" / "thief.onnx").string()), ModelError);
}

TEST_F(ExternalDataTest, RefusesSpecialFilesWithoutWaiting) {
  ASSERT_EQ(mkfifo((root_ / "model" / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal<ModelError>(model("pipe"), folder()), HasSubstr("regular file"));
  EXPECT_NE(refusal<Error>(model("."), folder()), "");
}

TEST_F(ExternalDataTest, RefusesRangesOutsideTheFile) {
  for (const auto& [key, value] :
       {std::pair("offset", "4"), std::pair("offset", "-4"), std::pair("offset", "9223372036854775807"),
        std::pair("length", "64"), std::pair("offset", "x")}) {
    const auto change = [&, name = std::string(key), text = std::string(value)](onnx::TensorProto& t) {
      set_entry(t, name, text);
    };
    EXPECT_THAT(refusal<ModelError>(model("good.bin", change), folder()), HasSubstr("'w'")) << key << value;
  }
}

TEST_F(ExternalDataTest, MissingFilesAreIoErrors) {
  EXPECT_THAT(refusal<IoError>(model("none.bin"), folder()), HasSubstr("'w'"));
}

TEST_F(ExternalDataTest, RefusedPathsAreNotFilledWithRandomWeights) {
  ImportOptions options;
  options.random_weights = true;
  EXPECT_NE(refusal<ModelError>(model("../absent.bin"), folder(), options), "");
}

TEST(OnnxBadInputTest, AnOutputOfAnotherElementTypeIsNamed) {
  onnx::ModelProto model = small_model();
  add_value(*model.mutable_graph()->mutable_output(0), "y", {4}, onnx::TensorProto::INT32);
  EXPECT_THAT(import_model_bytes(model.SerializeAsString(), "").warnings,
              testing::ElementsAre("output 'y' is declared as i32[4], but is computed as f32[4]"));
}

TEST_F(ExternalDataTest, TensorsInAttributesAreCheckedToo) {
  onnx::ModelProto model = empty_model(18);
  add_output(*model.mutable_graph(), "y");
  onnx::NodeProto& node = add_node(*model.mutable_graph(), "Constant", {}, {"y"});
  onnx::GraphProto scratch;
  onnx::AttributeProto& value = *node.add_attribute();
  value.set_name("value");
  value.set_type(onnx::AttributeProto::TENSOR);
  *value.mutable_t() = add_external(scratch, "w", "../secret.bin");
  EXPECT_THAT(refusal<ModelError>(model, folder()), HasSubstr("'w'"));
}

}  // namespace
}  // namespace sylvite::bad_input_test
