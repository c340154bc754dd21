#include "frontend/onnx/importer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx-ml.pb.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/verifier.h"
#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/weights.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::importer_test {
namespace {

std::string model_path(const std::string& name) {
  return std::string(SYLVITE_TEST_DATA) + "/models/" + name + ".onnx";
}

nlohmann::json expected_index() {
  std::ifstream file(std::string(SYLVITE_TEST_DATA) + "/expected/expected.json");
  return nlohmann::json::parse(file);
}

ImportOptions random_options() {
  ImportOptions options;
  options.random_weights = true;
  return options;
}

class ModelTest : public testing::TestWithParam<std::string> {};

TEST_P(ModelTest, ImportsWithTheExpectedInterface) {
  const Graph graph = import_onnx(model_path(GetParam()), random_options());
  verify(graph);
  const nlohmann::json expected = expected_index().at(GetParam());
  ASSERT_EQ(graph.inputs.size(), 1U);
  EXPECT_EQ(graph.value(graph.inputs[0]).name, "x");
  EXPECT_EQ(graph.type(graph.inputs[0]).dims(), expected.at("inputs").at("x").get<Dims>());
  ASSERT_EQ(graph.outputs.size(), 1U);
  EXPECT_EQ(graph.value(graph.outputs[0]).name, expected.at("output").get<std::string>());
  EXPECT_EQ(graph.type(graph.outputs[0]).dims(), expected.at("output_shape").get<Dims>());
}

INSTANTIATE_TEST_SUITE_P(Models, ModelTest,
                         testing::Values("bert_base", "densenet121", "efficientnet_b0", "gpt2_small",
                                         "mobilenet_v2", "mobilenet_v3_large", "resnet18", "resnet50",
                                         "shufflenet_v2", "squeezenet1_1", "vgg16", "vit_b_16"),
                         [](const auto& tested) { return tested.param; });

TEST(OnnxImporterTest, RefusesAbsentWeightsUnlessRandomOnesAreAskedFor) {
  try {
    (void)import_onnx(model_path("resnet18"));
    FAIL();
  } catch (const IoError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("--random-weights"));
    EXPECT_THAT(error.what(), testing::HasSubstr("should be in"));
  }
}

TEST(OnnxImporterTest, RandomFloatsHaveTheirFrozenBits) {
  const Tensor tensor = random_floats(DType::f32, {4}, "weight", 0, 1.0);
  // From tests/data/make_expected.py: random_floats("weight", [4], 1.0).
  EXPECT_THAT(tensor.view<float>(), testing::ElementsAre(-0x1.c8d3840000000p-1F, -0x1.f706900000000p-3F,
                                                         0x1.50ff380000000p-1F, 0x1.db85a00000000p-1F));
}

Graph import_model(const onnx::ModelProto& model, const ImportOptions& options = {}) {
  Graph graph = import_onnx_bytes(model.SerializeAsString(), "", options);
  verify(graph);
  return graph;
}

/// A model of one node from x to y.
onnx::ModelProto one_node(int opset, const std::string& op, const std::vector<std::int64_t>& dims) {
  onnx::ModelProto model = empty_model(opset);
  add_input(*model.mutable_graph(), "x", dims);
  add_output(*model.mutable_graph(), "y");
  add_node(*model.mutable_graph(), op, {"x"}, {"y"});
  return model;
}

std::vector<float> run(const onnx::ModelProto& model, const std::vector<Tensor>& inputs,
                       const ImportOptions& options = {}) {
  const Tensor result = interpret(import_model(model, options), inputs).at(0);
  const auto view = result.view<float>();
  return {view.begin(), view.end()};
}

Tensor floats(const Dims& dims, const std::vector<float>& values) {
  return Tensor::of(DType::f32, dims, values);
}

TEST(OnnxImporterTest, ComputesASmallModel) {
  const Tensor x = floats({2, 3}, {-1, 0, 1, 2, 3, 4});
  EXPECT_THAT(run(small_model(), {x}), testing::ElementsAre(5, 6, 10, 12));
}

TEST(OnnxImporterTest, TakesNodesInAnyOrder) {
  onnx::ModelProto model = small_model();
  model.mutable_graph()->mutable_node()->SwapElements(0, 3);
  model.mutable_graph()->mutable_node()->SwapElements(1, 2);
  const Tensor x = floats({2, 3}, {-1, 0, 1, 2, 3, 4});
  EXPECT_THAT(run(model, {x}), testing::ElementsAre(5, 6, 10, 12));
}

TEST(OnnxImporterTest, RefusesSurplusInputs) {
  onnx::ModelProto model = one_node(18, "Relu", {2});
  onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
  node.add_input("");  // absent
  EXPECT_NO_THROW((void)import_model(model));
  node.add_input("x");
  EXPECT_THAT([&] { (void)import_model(model); },
              testing::ThrowsMessage<ModelError>(testing::HasSubstr("input 2 ('x') is one too many")));
  node.set_op_type("Sum");  // takes any number
  node.mutable_input()->DeleteSubrange(1, 1);
  EXPECT_NO_THROW((void)import_model(model));
}

// A Graph multiplies f32 by bf16; ONNX has one type for both.
TEST(OnnxImporterTest, RefusesFactorsOfTwoTypes) {
  for (const char* op : {"MatMul", "Gemm"}) {
    onnx::ModelProto model = one_node(18, op, {2, 2});
    onnx::GraphProto& graph = *model.mutable_graph();
    *graph.add_input() = graph.input(0);
    onnx::ValueInfoProto& right = *graph.mutable_input(1);
    right.set_name("w");
    graph.mutable_node(0)->add_input("w");
    EXPECT_NO_THROW((void)import_model(model)) << op;
    right.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BFLOAT16);
    EXPECT_THAT(
        [&] { (void)import_model(model); },
        testing::ThrowsMessage<ModelError>(testing::HasSubstr("element types f32 and bf16, expected one")))
        << op;
  }
}

TEST(OnnxImporterTest, RefusesFiltersOfAnotherType) {
  onnx::ModelProto model = one_node(18, "Conv", {1, 2, 5, 5});
  onnx::GraphProto& graph = *model.mutable_graph();
  *graph.add_input() = one_node(18, "Conv", {2, 1, 3, 3}).graph().input(0);
  onnx::ValueInfoProto& filters = *graph.mutable_input(1);
  filters.set_name("w");
  graph.mutable_node(0)->add_input("w");
  onnx::AttributeProto& group = *graph.mutable_node(0)->add_attribute();
  group.set_name("group");
  group.set_type(onnx::AttributeProto::INT);
  group.set_i(2);
  EXPECT_NO_THROW((void)import_model(model));
  graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BFLOAT16);
  EXPECT_THAT(
      [&] { (void)import_model(model); },
      testing::ThrowsMessage<ModelError>(testing::HasSubstr("element types bf16 and f32, expected one")));
}

TEST(OnnxImporterTest, SoftmaxFlattensBeforeOpset13) {
  const Tensor x = floats({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_THAT(run(one_node(11, "Softmax", {1, 2, 2}), {x}), testing::Each(0.25F));
  EXPECT_THAT(run(one_node(13, "Softmax", {1, 2, 2}), {x}), testing::Each(0.5F));
}

TEST(OnnxImporterTest, ClipTakesBoundsFromAttributesOrInputs) {
  const Tensor x = floats({3}, {-5, 0.5, 5});
  onnx::ModelProto older = one_node(6, "Clip", {3});
  set_real(*older.mutable_graph()->mutable_node(0), "min", -1);
  set_real(*older.mutable_graph()->mutable_node(0), "max", 1);
  EXPECT_THAT(run(older, {x}), testing::ElementsAre(-1, 0.5, 1));
  onnx::ModelProto newer = one_node(13, "Clip", {3});
  add_floats(*newer.mutable_graph(), "high", {}, {1});
  newer.mutable_graph()->mutable_node(0)->add_input("");
  newer.mutable_graph()->mutable_node(0)->add_input("high");
  EXPECT_THAT(run(newer, {x}), testing::ElementsAre(-5, 0.5, 1));
}

TEST(OnnxImporterTest, SpaceToDepthOrdersBlocksAsItsModeSays) {
  const Tensor x = floats({1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  onnx::ModelProto model = one_node(28, "SpaceToDepth", {1, 2, 2, 2});
  onnx::NodeProto& node = *model.mutable_graph()->mutable_node(0);
  set_integer(node, "blocksize", 2);
  EXPECT_THAT(run(model, {x}), testing::ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  set_text(node, "mode", "CRD");
  EXPECT_THAT(run(model, {x}), testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(OnnxImporterTest, GatesScaleTheirOwnShape) {
  onnx::ModelProto model = one_node(28, "SwiGLU", {2});
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "b", {2});
  graph.mutable_node(0)->add_input("b");
  set_real(*graph.mutable_node(0), "alpha", 0);
  EXPECT_THAT(run(model, {floats({2}, {2, -4}), floats({2}, {3, 5})}), testing::ElementsAre(3, -10));
  add_value(*graph.mutable_input(1), "b", {1});
  EXPECT_THAT([&] { (void)import_model(model); },
              testing::ThrowsMessage<ModelError>(testing::HasSubstr("differ in shape")));
}

// From 2048 to 2056: in f16 itself 2048 + 1 is 2048.
TEST(OnnxImporterTest, RangesOfNarrowFloatsGrow) {
  onnx::ModelProto model = empty_model(27);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const auto& [name, bits] :
       {std::pair("start", 0x6800), std::pair("limit", 0x6804), std::pair("delta", 0x3c00)}) {
    onnx::TensorProto& tensor = add_floats(graph, name, {}, {});
    tensor.set_data_type(onnx::TensorProto::FLOAT16);
    tensor.add_int32_data(bits);
  }
  add_node(graph, "Range", {"start", "limit", "delta"}, {"r"});
  set_integer(add_node(graph, "Cast", {"r"}, {"y"}), "to", onnx::TensorProto::FLOAT);
  add_output(graph, "y");
  EXPECT_THAT(run(model, {}), testing::ElementsAre(2048, 2048, 2050, 2052, 2052, 2052, 2054, 2056));
}

TEST(OnnxImporterTest, SqueezeTakesAxesFromAttributeOrInput) {
  onnx::ModelProto older = one_node(11, "Squeeze", {1, 2, 1});
  set_integers(*older.mutable_graph()->mutable_node(0), "axes", {0});
  EXPECT_EQ(import_model(older).type(import_model(older).outputs[0]).dims(), (Dims{2, 1}));
  onnx::ModelProto newer = one_node(13, "Squeeze", {1, 2, 1});
  add_integers(*newer.mutable_graph(), "axes", {-1});
  newer.mutable_graph()->mutable_node(0)->add_input("axes");
  EXPECT_EQ(import_model(newer).type(import_model(newer).outputs[0]).dims(), (Dims{1, 2}));
}

TEST(OnnxImporterTest, BindsSymbolicDimsAndShapes) {
  onnx::ModelProto model = one_node(18, "Relu", {});
  auto& shape =
      *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("batch");
  shape.add_dim()->set_dim_value(3);
  const auto dims_with = [&](const ImportOptions& options) {
    const Graph graph = import_model(model, options);
    return graph.type(graph.outputs[0]).dims();
  };
  EXPECT_EQ(dims_with({}), (Dims{1, 3}));
  ImportOptions by_name;
  by_name.dims["batch"] = 7;
  EXPECT_EQ(dims_with(by_name), (Dims{7, 3}));
  ImportOptions whole;
  whole.input_shapes["x"] = {5, 3};
  EXPECT_EQ(dims_with(whole), (Dims{5, 3}));
  whole.input_shapes["x"] = {5, 4};
  EXPECT_THROW(dims_with(whole), UsageError);
  ImportOptions unknown;
  unknown.input_shapes["z"] = {5};
  EXPECT_THROW(dims_with(unknown), UsageError);
}

/// What importing with these options is refused with.
std::string usage_message(const onnx::ModelProto& model, const ImportOptions& options) {
  try {
    (void)import_model_bytes(model.SerializeAsString(), "", options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

onnx::ModelProto symbolic_model() {
  onnx::ModelProto model = one_node(18, "Relu", {});
  auto& shape =
      *model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("batch");
  shape.add_dim()->set_dim_param("sequence");
  shape.add_dim();
  return model;
}

TEST(OnnxImporterTest, RefusesUnknownNamesWithTheNearest) {
  ImportOptions options;
  options.dims["btach"] = 4;
  EXPECT_EQ(
      usage_message(symbolic_model(), options),
      "the model has no dimension 'btach'; did you mean batch? (its dimensions: batch, sequence, x_d2)");
  EXPECT_EQ(usage_message(one_node(18, "Relu", {2}), options),
            "the model has no dimension 'btach': the sizes of its inputs are all fixed");
  ImportOptions bound;
  bound.bound_inputs["xx"] = Tensor::vector_i64({6});
  EXPECT_THAT(usage_message(symbolic_model(), bound), testing::HasSubstr("no input 'xx'; did you mean x?"));
}

TEST(OnnxImporterTest, SaysWhereAnOutputIsNotAsDeclared) {
  onnx::ModelProto model = one_node(18, "Relu", {2});
  add_value(*model.mutable_graph()->mutable_output(0), "y", {5});
  EXPECT_THAT(import_model_bytes(model.SerializeAsString(), "").warnings,
              testing::ElementsAre("output 'y' is declared as [5], but is computed as f32[2]"));
  add_value(*model.mutable_graph()->mutable_output(0), "y", {});
  model.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  EXPECT_THAT(import_model_bytes(model.SerializeAsString(), "").warnings, testing::ElementsAre());
}

TEST(OnnxImporterTest, MessagesOfShapesNameTheInputOnceAndTheFlag) {
  ImportOptions options;
  options.input_shapes["x"] = {3};
  EXPECT_EQ(usage_message(one_node(18, "Relu", {2}), options),
            "input 'x': dimension 0 is 2 in the model, but 3 is given");
  onnx::ModelProto shapeless = one_node(18, "Relu", {});
  shapeless.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  try {
    (void)import_model_bytes(shapeless.SerializeAsString(), "");
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("--shapes x="));
  }
}

TEST(OnnxImporterTest, ShapesGivenAtRunTimeMustBeBound) {
  onnx::ModelProto model = one_node(18, "Reshape", {2, 3});
  add_input(*model.mutable_graph(), "shape", {1}, onnx::TensorProto::INT64);
  model.mutable_graph()->mutable_node(0)->add_input("shape");
  EXPECT_THROW((void)import_model(model), UnsupportedError);
  ImportOptions options;
  options.bound_inputs["shape"] = Tensor::vector_i64({6});
  const Graph graph = import_model(model, options);
  EXPECT_EQ(graph.inputs.size(), 1U);
  EXPECT_EQ(graph.type(graph.outputs[0]).dims(), (Dims{6}));
}

TEST(OnnxImporterTest, BoundValuesHaveTheShapesOfTheModel) {
  onnx::ModelProto model = one_node(18, "Relu", {-1, 3});
  const auto import_with = [&](const Dims& dims) {
    ImportOptions options;
    options.bound_inputs["x"] = Tensor(DType::f32, dims);
    return import_model(model, options);
  };
  model.mutable_graph()
      ->mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(0)
      ->set_dim_param("n");
  EXPECT_EQ(import_with({2, 3}).inputs.size(), 0U);
  EXPECT_THROW((void)import_with({2, 4}), UsageError);
  EXPECT_THROW((void)import_with({3}), UsageError);
}

TEST(OnnxImporterTest, ShapeArithmeticLeavesNoNodes) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 3, 4});
  add_output(graph, "y");
  add_integers(graph, "zero", {0});
  add_integers(graph, "rest", {-1});
  add_node(graph, "Shape", {"x"}, {"shape"});
  add_node(graph, "Gather", {"shape", "zero"}, {"batch"});
  set_integer(add_node(graph, "Concat", {"batch", "rest"}, {"target"}), "axis", 0);
  add_node(graph, "Reshape", {"x", "target"}, {"y"});
  const Graph imported = import_model(model);
  ASSERT_EQ(imported.nodes().size(), 1U);
  EXPECT_EQ(imported.nodes()[0].op, Op::reshape);
  EXPECT_EQ(imported.type(imported.outputs[0]).dims(), (Dims{2, 12}));
}

TEST(OnnxImporterTest, RefusesKnownIndicesBeyondATable) {
  for (const char* op : {"Gather", "GatherElements"}) {
    for (const auto& [index, is_in] : {std::pair{2, true}, {-3, true}, {3, false}, {-4, false}}) {
      onnx::ModelProto model = empty_model(18);
      onnx::GraphProto& graph = *model.mutable_graph();
      add_input(graph, "table", {3});
      add_output(graph, "y");
      add_integers(graph, "places", {0, index});
      add_node(graph, op, {"table", "places"}, {"y"});
      if (is_in) {
        EXPECT_NO_THROW((void)import_model(model)) << op << ' ' << index;
        continue;
      }
      const std::string message = "index " + std::to_string(index) + " is beyond the 3 rows of 'table'";
      EXPECT_THAT([&] { (void)import_model(model); },
                  testing::ThrowsMessage<ModelError>(testing::HasSubstr(message)));
    }
  }
}

TEST(OnnxImporterTest, RefusesKnownIndicesBeyondATableOfSeveralDims) {
  for (const auto& [row, column, is_in] :
       {std::tuple{2, 1, true}, {-3, -2, true}, {1, 2, false}, {3, 0, false}}) {
    onnx::ModelProto model = empty_model(18);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "table", {3, 2});
    add_output(graph, "y");
    add_integers(graph, "place", {row, column});
    add_node(graph, "GatherND", {"table", "place"}, {"y"});
    if (is_in)
      EXPECT_NO_THROW((void)import_model(model)) << row << ' ' << column;
    else
      EXPECT_THROW((void)import_model(model), ModelError) << row << ' ' << column;
  }
}

TEST(OnnxImporterTest, RefusesOneNumberAsIndicesOfSeveralDims) {
  onnx::ModelProto model = one_node(18, "GatherND", {3, 2});
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.mutable_node(0)->add_input("place");
  add_integers(graph, "place", {1});
  graph.mutable_initializer(0)->clear_dims();
  EXPECT_THROW((void)import_model(model), ModelError);
}

TEST(OnnxImporterTest, InlinesFunctionsWithTheirAttributes) {
  onnx::ModelProto model = one_node(18, "Scaled", {2});
  model.mutable_graph()->mutable_node(0)->set_domain("local");
  set_real(*model.mutable_graph()->mutable_node(0), "slope", 0.5F);
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("local");
  function.set_name("Scaled");
  function.add_input("a");
  function.add_output("b");
  function.add_attribute("slope");
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type("LeakyRelu");
  node.add_input("a");
  node.add_output("b");
  onnx::AttributeProto& alpha = *node.add_attribute();
  alpha.set_name("alpha");
  alpha.set_ref_attr_name("slope");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  EXPECT_THAT(run(model, {floats({2}, {-4, 4})}), testing::ElementsAre(-2, 4));
  model.mutable_graph()->mutable_node(0)->add_input("x");
  EXPECT_THAT(
      [&] { (void)import_model(model); },
      testing::ThrowsMessage<ModelError>(testing::HasSubstr("2 inputs are given, the function takes 1")));
}

TEST(OnnxImporterTest, ImportsTheTakenBranchOnly) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2});
  add_output(graph, "y");
  onnx::TensorProto& condition = *graph.add_initializer();
  condition.set_name("condition");
  condition.set_data_type(onnx::TensorProto::BOOL);
  condition.add_int32_data(1);
  onnx::NodeProto& node = add_node(graph, "If", {"condition"}, {"y"});
  onnx::GraphProto& taken = set_graph(node, "then_branch");
  add_node(taken, "Neg", {"x"}, {"z"});
  add_output(taken, "z");
  onnx::GraphProto& other = set_graph(node, "else_branch");
  add_node(other, "NoSuchOperator", {"x"}, {"z"});
  add_output(other, "z");
  EXPECT_THAT(run(model, {floats({2}, {1, -2})}), testing::ElementsAre(-1, 2));
}

TEST(OnnxImporterTest, GroupsOfChannelsWithoutPlacesAreNormalised) {
  onnx::ModelProto model = empty_model(21);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 4});
  add_floats(graph, "scale", {4}, {1, 2, 1, 1});
  add_floats(graph, "bias", {4}, {0, 0, 0, 5});
  set_integer(add_node(graph, "GroupNormalization", {"x", "scale", "bias"}, {"y"}), "num_groups", 2);
  add_output(graph, "y");
  const Graph imported = import_model(model);
  const Tensor y = interpret(imported, {floats({2, 4}, {1, 3, 10, 30, 8, 4, 2, 6})}).at(0);
  const double wanted[] = {-1, 2, -1, 6, 1, -2, -1, 6};
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_NEAR(y.as_double(i), wanted[i], 1e-4) << i;
}

TEST(OnnxImporterTest, OutputsKeepTheirNames) {
  onnx::ModelProto model = empty_model(18);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2});
  for (const char* name : {"a", "b"}) add_output(graph, name);
  add_node(graph, "Identity", {"x"}, {"a"});
  add_node(graph, "Identity", {"x"}, {"b"});
  const Graph imported = import_model(model);
  EXPECT_EQ(imported.value(imported.outputs[0]).name, "a");
  EXPECT_EQ(imported.value(imported.outputs[1]).name, "b");
}

/// ONNX wants other names in subgraphs; runtimes take these, and files have them.
TEST(OnnxImporterTest, ASubgraphMayNameItsValuesAsItsNodeDoes) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2});
  add_input(graph, "condition", {}, onnx::TensorProto::BOOL);
  add_output(graph, "y");
  onnx::NodeProto& node = add_node(graph, "If", {"condition"}, {"y"});
  onnx::GraphProto& taken = set_graph(node, "then_branch");
  add_node(taken, "Neg", {"x"}, {"y"});
  add_output(taken, "y");
  onnx::GraphProto& other = set_graph(node, "else_branch");
  add_node(other, "Relu", {"x"}, {"y"});
  add_output(other, "y");
  EXPECT_EQ(import_onnx_bytes(model.SerializeAsString(), "").outputs.size(), 1U);
}

/// As embedding bags of nothing have it.
TEST(OnnxImporterTest, TheMeanOfNoElementsIsZero) {
  const Graph graph = import_model(one_node(13, "ReduceMean", {0}));
  const Tensor mean = interpret(graph, {Tensor(DType::f32, {0})}).at(0);
  ASSERT_EQ(mean.size(), 1);
  EXPECT_EQ(mean.as_double(0), 0);
}

}  // namespace
}  // namespace sylvite::importer_test
