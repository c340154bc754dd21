// Sizes that nobody gave and that go by names: inputs whose sizes follow from those of others.

#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite::guessed_sizes_test {
namespace {

void add_image(onnx::GraphProto& graph, const std::string& name, const std::string& suffix) {
  add_input(graph, name, {});
  auto& shape =
      *graph.mutable_input(graph.input_size() - 1)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("batch" + suffix);
  shape.add_dim()->set_dim_value(3);
  for (const char* side : {"height", "width"}) shape.add_dim()->set_dim_param(side + suffix);
}

/// A frame, and states of the frame before it that are of one element at first, as matting networks have them.
TEST(GuessedSizes, StatesAreOfOneElementAtFirst) {
  const TemporaryFolder folder;
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_image(graph, "frame", "");
  add_image(graph, "first_state", "_1");
  add_image(graph, "second_state", "_2");
  add_output(graph, "y");
  add_node(graph, "MaxPool", {"frame"}, {"half"});
  for (const char* name : {"kernel_shape", "strides"})
    set_integers(*graph.mutable_node(graph.node_size() - 1), name, {2, 2});
  add_node(graph, "Shape", {"half"}, {"dims"});
  add_node(graph, "Expand", {"first_state", "dims"}, {"before"});
  add_node(graph, "Expand", {"second_state", "dims"}, {"after"});
  add_node(graph, "Concat", {"half", "before", "after"}, {"y"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "axis", 1);
  const std::string path = folder.path() + "/states.onnx";
  write_file(path, model.SerializeAsString());
  const OpenModel open = open_model(path, make_setup(test_options(folder.path())));
  EXPECT_EQ(first_sizes(open.parsed.sizes), (Sizes{1, 224, 224, 1, 1, 1, 1, 1, 1}));
  CompiledModel compiled = compile(path, test_options(folder.path()));
  const Tensor frame(DType::f32, {1, 3, 8, 12});
  const Tensor none(DType::f32, {1, 3, 1, 1});
  const Tensor state(DType::f32, {1, 3, 4, 6});
  EXPECT_EQ(compiled.run({frame, none, none}).at(0).dims(), (Dims{1, 9, 4, 6}));
  EXPECT_EQ(compiled.run({frame, state, state}).at(0).dims(), (Dims{1, 9, 4, 6}));
}

/// No operator that reads the image says how many channels it has.
TEST(GuessedSizes, ImagesHaveThreeChannels) {
  const TemporaryFolder folder;
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {});
  auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const char* name : {"N", "C", "H", "W"}) shape.add_dim()->set_dim_param(name);
  add_output(graph, "y");
  add_node(graph, "Concat", {"x", "x"}, {"twice"});
  set_integer(*graph.mutable_node(0), "axis", 1);
  add_floats(graph, "weights", {1, 6, 1, 1}, std::vector<float>(6, 1.0F));
  add_node(graph, "Conv", {"twice", "weights"}, {"y"});
  const std::string path = folder.path() + "/channels.onnx";
  write_file(path, model.SerializeAsString());
  const OpenModel open = open_model(path, make_setup(test_options(folder.path())));
  EXPECT_EQ(first_sizes(open.parsed.sizes), (Sizes{1, 3, 224, 224}));
}

/// Lines of 3 values, as many as `name` says, flattened and multiplied by a matrix of `rows` rows.
std::string save_flattened(const TemporaryFolder& folder, const std::string& name, std::int64_t rows) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 1, 3});
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param(
      name);
  add_output(graph, "y");
  add_node(graph, "Flatten", {"x"}, {"line"});
  add_floats(graph, "weights", {rows, 1}, std::vector<float>(static_cast<std::size_t>(rows), 1.0F));
  add_node(graph, "MatMul", {"line", "weights"}, {"y"});
  const std::string path = folder.path() + "/flattened.onnx";
  write_file(path, model.SerializeAsString());
  return path;
}

TEST(GuessedSizes, PowersOfTwoAreTriedWhereUsualSizesDoNotFit) {
  const TemporaryFolder folder;
  const std::string path = save_flattened(folder, "width", 384);
  const OpenModel open = open_model(path, make_setup(test_options(folder.path())));
  EXPECT_EQ(first_sizes(open.parsed.sizes), (Sizes{128}));
}

/// As attention whose heads an exporter reshapes to the length that it traced.
TEST(GuessedSizes, SizesThatTheModelNamesAreTried) {
  const TemporaryFolder folder;
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1});
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_param(
      "length");
  add_output(graph, "y");
  add_integers(graph, "heads", {96, 4, -1});
  add_floats(graph, "eights", {8, 1}, std::vector<float>(8, 1.0F));
  add_node(graph, "Reshape", {"x", "heads"}, {"h"});
  add_node(graph, "MatMul", {"h", "eights"}, {"y"});
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(
      32);
  const std::string path = folder.path() + "/heads.onnx";
  write_file(path, model.SerializeAsString());
  const OpenModel open = open_model(path, make_setup(test_options(folder.path())));
  EXPECT_EQ(first_sizes(open.parsed.sizes), (Sizes{96}));
}

/// The best five of the points of a cloud, whose number stands where a batch does.
TEST(GuessedSizes, BatchesGrowWhereAModelTakesNoneSoSmall) {
  const TemporaryFolder folder;
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {});
  auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("points");
  shape.add_dim()->set_dim_value(3);
  add_output(graph, "y");
  add_integers(graph, "five", {5});
  add_node(graph, "TopK", {"x", "five"}, {"y", "places"});
  set_integer(*graph.mutable_node(graph.node_size() - 1), "axis", 0);
  const std::string path = folder.path() + "/points.onnx";
  write_file(path, model.SerializeAsString());
  const OpenModel open = open_model(path, make_setup(test_options(folder.path())));
  EXPECT_EQ(first_sizes(open.parsed.sizes), (Sizes{8}));
  CompiledModel compiled = compile(path, test_options(folder.path()));
  EXPECT_EQ(compiled.run({Tensor(DType::f32, {20, 3})}).at(0).dims(), (Dims{5, 3}));
}

/// Frames of as many features as a first layer has weights for, of which a window takes several.
TEST(GuessedSizes, FeaturesAreAsManyAsTheirWeights) {
  const TemporaryFolder folder;
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {});
  auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const char* name : {"frames", "features"}) shape.add_dim()->set_dim_param(name);
  add_output(graph, "y");
  add_floats(graph, "weights", {138, 2}, std::vector<float>(276, 1.0F));
  add_node(graph, "CumSum", {"x", "first"}, {"sums"});  // what reads the input says nothing of its features
  add_integers(graph, "first", {0});
  add_node(graph, "MatMul", {"sums", "weights"}, {"product"});
  add_integers(graph, "best", {5});
  add_node(graph, "TopK", {"product", "best"}, {"y", "places"});
  set_integer(*graph.mutable_node(2), "axis", 0);
  const std::string path = folder.path() + "/features.onnx";
  write_file(path, model.SerializeAsString());
  const OpenModel open = open_model(path, make_setup(test_options(folder.path())));
  EXPECT_EQ(first_sizes(open.parsed.sizes), (Sizes{128, 138}));
  CompiledModel compiled = compile(path, test_options(folder.path()));
  EXPECT_EQ(compiled.run({Tensor(DType::f32, {20, 138})}).at(0).dims(), (Dims{5, 2}));
}

}  // namespace
}  // namespace sylvite::guessed_sizes_test
