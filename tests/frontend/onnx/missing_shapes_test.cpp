#include "frontend/onnx/missing_shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/model_sizes.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::missing_shapes_test {
namespace {

using testing::ElementsAre;

onnx::GraphProto graph_of(const std::vector<std::string>& operators) {
  onnx::GraphProto graph;
  add_input(graph, "v0", {});
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  for (std::size_t i = 0; i < operators.size(); ++i)
    add_node(graph, operators[i], {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
  add_output(graph, "v" + std::to_string(operators.size()));
  return graph;
}

void add_weights(onnx::GraphProto& graph, int node, const std::vector<std::int64_t>& dims) {
  graph.mutable_node(node)->add_input("w");
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  for (const std::int64_t dim : dims) tensor.add_dims(dim);
}

/// The first input's axes as text, "" where it has no shape: names of open ones, sizes of others.
std::string axes_of(onnx::GraphProto graph, const ImportOptions& options = {}) {
  open_default_inputs(graph, options);
  declare_missing_shapes(graph, options);
  const ModelSizes sizes = read_model_sizes(graph, options);
  std::string text;
  for (const SizedInput::Axis& axis : sizes.inputs.at(0).axes)
    text +=
        (text.empty() ? "" : ",") + (axis.symbol < 0 ? std::to_string(axis.extent) : axis_name(sizes, axis));
  return text;
}

TEST(MissingShapes, FollowFromWhatReadsTheInput) {
  onnx::GraphProto convolution = graph_of({"Cast", "Relu", "Conv"});
  add_weights(convolution, 2, {8, 3, 5, 5});
  EXPECT_EQ(axes_of(convolution), "v0_d0,3,v0_d2,v0_d3");
  set_integer(*convolution.mutable_node(2), "group", 4);
  EXPECT_EQ(axes_of(convolution), "v0_d0,12,v0_d2,v0_d3");
  onnx::GraphProto rows = graph_of({"Gemm"});
  add_weights(rows, 0, {7, 9});
  EXPECT_EQ(axes_of(rows), "v0_d0,7");
  set_integer(*rows.mutable_node(0), "transB", 1);
  EXPECT_EQ(axes_of(rows), "v0_d0,9");
  onnx::GraphProto moved = graph_of({"Transpose", "Conv"});
  set_integers(*moved.mutable_node(0), "perm", {0, 3, 1, 2});
  add_weights(moved, 1, {8, 3, 5, 5});
  EXPECT_EQ(axes_of(moved), "v0_d0,v0_d1,v0_d2,3");
  onnx::GraphProto norm = graph_of({"BatchNormalization"});
  add_weights(norm, 0, {6});
  auto& shape = *norm.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int axis = 0; axis < 4; ++axis) shape.add_dim();
  EXPECT_EQ(axes_of(norm), "v0_d0,6,v0_d2,v0_d3");
  EXPECT_EQ(axes_of(graph_of({"Relu"})), "");
}

TEST(MissingShapes, AreThoseThatAreGiven) {
  onnx::GraphProto graph = graph_of({"Relu"});
  ImportOptions options;
  options.input_shapes["v0"] = {2, 0, 5};
  EXPECT_EQ(axes_of(graph, options), "2,0,5");
  graph.mutable_output(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim();
  EXPECT_EQ(axes_of(graph), "v0_d0");  // the result's rank is declared
}

TEST(MissingShapes, SizesOfWeightsAreNotOpen) {
  onnx::GraphProto graph = graph_of({"Conv"});
  add_weights(graph, 0, {4, 1, 3, 3});
  auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const char* name : {"batch", "channels", "height", "width"}) shape.add_dim()->set_dim_param(name);
  EXPECT_EQ(axes_of(graph), "batch,1,height,width");
  ImportOptions options;
  options.dims["channels"] = 2;  // its own refusal comes from the convolution
  EXPECT_EQ(axes_of(graph, options), "batch,2,height,width");
}

TEST(MissingShapes, ProductsPinTheLastAxisOfAnyRank) {
  onnx::GraphProto graph = graph_of({"MatMul"});
  add_weights(graph, 0, {12, 4});
  EXPECT_EQ(axes_of(graph), "v0_d0,12");
  auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (int axis = 0; axis < 3; ++axis) shape.add_dim();
  EXPECT_EQ(axes_of(graph), "v0_d0,v0_d1,12");
}

TEST(MissingShapes, InputsWithAValueOfTheModelAreInputsWhereAShapeIsGiven) {
  onnx::ModelProto model = empty_model(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2});
  add_input(graph, "w", {2});
  add_floats(graph, "w", {2}, {3, 4});
  add_node(graph, "Mul", {"x", "w"}, {"y"});
  add_output(graph, "y");
  EXPECT_EQ(import_model_bytes(model.SerializeAsString(), "").graph.inputs.size(), 1U);
  ImportOptions options;
  options.input_shapes["w"] = {2};
  EXPECT_EQ(import_model_bytes(model.SerializeAsString(), "", options).graph.inputs.size(), 2U);
}

}  // namespace
}  // namespace sylvite::missing_shapes_test
