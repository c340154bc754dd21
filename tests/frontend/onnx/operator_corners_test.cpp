// Operators with attributes, extents and types that are seldom seen, beside what ONNX Runtime 1.32 gives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::operator_corners_test {
namespace {

using testing::ElementsAre;

Tensor run(const onnx::ModelProto& model, const std::vector<Tensor>& inputs) {
  return interpret(import_onnx_bytes(model.SerializeAsString(), "", {}), inputs).at(0);
}

TEST(OperatorCorners, ALabelThatOccursTwiceIsInNoImplicitResult) {
  onnx::ModelProto model = empty_model(12);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {2, 2});
  set_text(add_node(graph, "Einsum", {"x"}, {"y"}), "equation", "ii");
  add_output(graph, "y");
  const Tensor trace = run(model, {Tensor::of<float>(DType::f32, {2, 2}, {1, 2, 3, 5})});
  EXPECT_EQ(trace.dims(), Dims{});
  EXPECT_EQ(trace.as_double(0), 6);
}

/// The position stays; each of the elements that it draws from is pulled inside.
TEST(OperatorCorners, CubicSamplesBeyondABorderDrawFromElementsInside) {
  onnx::ModelProto model = empty_model(20);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 1, 2, 3});
  add_input(graph, "grid", {1, 1, 2, 2});
  onnx::NodeProto& node = add_node(graph, "GridSample", {"x", "grid"}, {"y"});
  set_text(node, "mode", "cubic");
  set_text(node, "padding_mode", "border");
  set_integer(node, "align_corners", 1);
  add_output(graph, "y");
  const Tensor y = run(model, {Tensor::of<float>(DType::f32, {1, 1, 2, 3}, {0, 1, 2, 4, 9, 3}),
                               Tensor::of<float>(DType::f32, {1, 1, 2, 2}, {1.2F, 0.5F, -0.25F, -1.5F})});
  EXPECT_NEAR(y.as_double(0), 2.349689, 1e-5);
  EXPECT_NEAR(y.as_double(1), -0.158066, 1e-5);
}

TEST(OperatorCorners, LogarithmsOfSumsOfIntegersAreCut) {
  for (const char* op : {"ReduceLogSum", "ReduceLogSumExp"}) {
    onnx::ModelProto model = empty_model(18);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "x", {2, 3}, onnx::TensorProto::INT32);
    add_integers(graph, "axes", {1});
    add_node(graph, op, {"x", "axes"}, {"y"});
    add_output(graph, "y");
    Tensor x(DType::i32, {2, 3});
    for (std::int64_t i = 0; i < 6; ++i) x.set_int64(i, i * i);
    const Tensor y = run(model, {x});
    EXPECT_EQ(y.dtype(), DType::i32);
    EXPECT_THAT(y.to_int64s(), op == std::string("ReduceLogSum") ? ElementsAre(1, 3) : ElementsAre(4, 25));
  }
}

/// As boxes that a detector makes of noise; with a number of samples a bin of its own a region has them.
TEST(OperatorCorners, RegionsWithoutExtentAreZero) {
  for (const char* mode : {"avg", "max"}) {
    onnx::ModelProto model = empty_model(16);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "x", {1, 1, 4, 4});
    add_floats(graph, "regions", {3, 4}, {1, 1, 1, 3, 3, 3, 2, 2, 0, 0, 2, 2});
    add_integers(graph, "batch", {0, 0, 0});
    set_text(add_node(graph, "RoiAlign", {"x", "regions", "batch"}, {"y"}), "mode", mode);
    add_output(graph, "y");
    Tensor x(DType::f32, {1, 1, 4, 4});
    for (std::int64_t i = 0; i < 16; ++i) x.set_double(i, 1);
    const Tensor y = run(model, {x});
    EXPECT_EQ(y.as_double(0), 0) << mode;
    EXPECT_EQ(y.as_double(1), 0) << mode;
    EXPECT_GT(y.as_double(2), 0) << mode;
  }
}

}  // namespace
}  // namespace sylvite::operator_corners_test
