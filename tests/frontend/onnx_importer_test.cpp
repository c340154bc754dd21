#include "frontend/onnx_importer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx-ml.pb.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "frontend/interpreter.h"
#include "frontend/onnx_weights.h"
#include "frontend/verifier.h"

namespace sylvite {
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
  EXPECT_THROW((void)import_onnx(model_path("resnet18")), IoError);
}

TEST(OnnxImporterTest, RandomFloatsHaveTheirFrozenBits) {
  const Tensor tensor = random_floats(DType::f32, {4}, "weight", 0, 1.0);
  // From tests/data/make_expected.py: random_floats("weight", [4], 1.0).
  EXPECT_THAT(tensor.view<float>(), testing::ElementsAre(-0x1.c8d3840000000p-1F, -0x1.f706900000000p-3F,
                                                         0x1.50ff380000000p-1F, 0x1.db85a00000000p-1F));
}

}  // namespace
}  // namespace sylvite
