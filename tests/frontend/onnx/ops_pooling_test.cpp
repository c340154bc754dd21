// Windows of ONNX's poolings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::ops_pooling_test {
namespace {

using testing::ElementsAre;

std::vector<double> pooled(const std::string& op, const Dims& dims, std::int64_t stride) {
  onnx::ModelProto model = empty_model(19);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", dims);
  add_output(graph, "y");
  onnx::NodeProto& node = add_node(graph, op, {"x"}, {"y"});
  set_integers(node, "kernel_shape", {2, 2});
  set_integers(node, "strides", {stride, stride});
  Tensor x(DType::f32, dims);
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i + 1));
  const Tensor y = interpret(import_onnx_bytes(model.SerializeAsString(), ""), {x}).at(0);
  std::vector<double> values;
  for (std::int64_t i = 0; i < y.size(); ++i) values.push_back(y.as_double(i));
  return values;
}

TEST(OnnxPooling, AMapOfOneLineHasAWindowThatEndsOutside) {
  EXPECT_THAT(pooled("AveragePool", {1, 1, 1, 4}, 2), ElementsAre(1.5, 3.5));
  EXPECT_THAT(pooled("MaxPool", {1, 1, 1, 4}, 2), ElementsAre(2, 4));
  EXPECT_THAT(pooled("MaxPool", {1, 2, 3, 1}, 2), ElementsAre(2, 5));
}

TEST(OnnxPooling, AWindowThatMovesByOneMustFit) {
  EXPECT_THROW((void)pooled("AveragePool", {1, 1, 1, 4}, 1), ModelError);
}

}  // namespace
}  // namespace sylvite::ops_pooling_test
