// Operators with attributes, extents and types that are seldom seen, beside what ONNX Runtime 1.32 gives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
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

TEST(OperatorCorners, AGridMayBeOfAnotherTypeThanItsMap) {
  onnx::ModelProto model = empty_model(20);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 1, 1, 2});
  add_input(graph, "grid", {1, 1, 1, 2}, onnx::TensorProto::DOUBLE);
  set_integer(add_node(graph, "GridSample", {"x", "grid"}, {"y"}), "align_corners", 1);
  add_output(graph, "y");
  const Tensor y = run(model, {Tensor::of<float>(DType::f32, {1, 1, 1, 2}, {1, 3}),
                               Tensor::of<double>(DType::f64, {1, 1, 1, 2}, {-0.5, 0.0})});
  EXPECT_EQ(y.dtype(), DType::f32);
  EXPECT_NEAR(y.as_double(0), 1.5, 1e-6);
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

/// Before opset 7 a second operand begins at `axis`; here it would fit at the end as well, and mean something else.
TEST(OperatorCorners, OldOperandsBeginAtTheirAxis) {
  const Tensor x = Tensor::of<float>(DType::f32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor y = Tensor::of<float>(DType::f32, {2}, {3, 7});
  const auto result = [&](const char* op, std::int64_t axis) {
    onnx::ModelProto model = empty_model(6);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "x", {2, 2, 2});
    add_input(graph, "y", {2});
    onnx::NodeProto& node = add_node(graph, op, {"x", "y"}, {"z"});
    set_integer(node, "broadcast", 1);
    set_integer(node, "axis", axis);
    add_output(graph, "z");
    return run(model, {x, y});
  };
  for (const std::int64_t axis : {0, 1, 2}) {
    const int shift = static_cast<int>(2 - axis);
    for (int i = 0; i < 8; ++i) {
      const double a = x.as_double(i), b = y.as_double(i >> shift & 1);
      EXPECT_EQ(result("Add", axis).as_double(i), a + b) << axis;
      EXPECT_EQ(result("Sub", axis).as_double(i), a - b) << axis;
      EXPECT_EQ(result("Mul", axis).as_double(i), a * b) << axis;
      EXPECT_FLOAT_EQ(static_cast<float>(result("Div", axis).as_double(i)), static_cast<float>(a / b))
          << axis;
      EXPECT_NEAR(result("Pow", axis).as_double(i), std::pow(a, b), 1e-4 * std::pow(a, b)) << axis;
      EXPECT_EQ(result("Less", axis).as_int64(i), a < b ? 1 : 0) << axis;
      EXPECT_EQ(result("Greater", axis).as_int64(i), a > b ? 1 : 0) << axis;
      EXPECT_EQ(result("Equal", axis).as_int64(i), a == b ? 1 : 0) << axis;
    }
  }
  EXPECT_THROW((void)result("Add", 3), ModelError);
}

TEST(OperatorCorners, FirstVersionsHaveAttributesOfTheirOwn) {
  onnx::ModelProto model = empty_model(1);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 1, 1, 2});
  onnx::NodeProto& up = add_node(graph, "Upsample", {"x"}, {"up"});
  set_real(up, "height_scale", 2);
  set_real(up, "width_scale", 1);
  set_integers(add_node(graph, "Pad", {"up"}, {"y"}), "paddings", {0, 0, 0, 1, 0, 0, 0, 0});
  add_output(graph, "y");
  const Tensor y = run(model, {Tensor::of<float>(DType::f32, {1, 1, 1, 2}, {4, 5})});
  EXPECT_EQ(y.dims(), (Dims{1, 1, 2, 3}));
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.as_double(i), i % 3 == 0 ? 0 : 3 + i % 3) << i;
}

TEST(OperatorCorners, NormsOfEachPositionAreRefused) {
  onnx::ModelProto model = empty_model(7);
  onnx::GraphProto& graph = *model.mutable_graph();
  for (const char* name : {"scale", "bias", "mean", "variance"}) add_floats(graph, name, {2}, {1, 1});
  add_input(graph, "x", {1, 2, 2});
  set_integer(add_node(graph, "BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"y"}),
              "spatial", 0);
  add_output(graph, "y");
  EXPECT_THROW((void)import_onnx_bytes(model.SerializeAsString(), "", {}), UnsupportedError);
}

/// Scales that the core operation of rounding does not take are brought to some that it does.
TEST(OperatorCorners, NumbersOfAllMagnitudesHaveTheStepsOfTheirRange) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {4});
  add_node(graph, "DynamicQuantizeLinear", {"x"}, {"y", "scale", "zero"});
  add_output(graph, "y");
  for (const float magnitude : {1e-39F, 1e-30F, 1e-18F, 1.0F, 1e25F, 1e38F}) {
    const Tensor y =
        run(model, {Tensor::of<float>(DType::f32, {4}, {-magnitude, 0, magnitude / 2, 1.5F * magnitude})});
    EXPECT_THAT(y.to_int64s(), ElementsAre(0, 102, 153, 255)) << magnitude;
  }
  EXPECT_THAT(run(model, {Tensor::of<float>(DType::f32, {4}, {0, 0, 0, 0})}).to_int64s(),
              ElementsAre(0, 0, 0, 0));
}

TEST(OperatorCorners, NeighbouringChannelsNormImagesOfAnyNumberOfAxes) {
  Tensor x(DType::f32, {2, 5, 24});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i * 7 % 23) - 11);
  const auto normed = [&](const Dims& dims) {
    onnx::ModelProto model = empty_model(13);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "x", dims);
    set_integer(add_node(graph, "LRN", {"x"}, {"y"}), "size", 3);
    add_output(graph, "y");
    return run(model, {x.reshaped(dims)});
  };
  const Tensor line = normed({2, 5, 24});
  for (const Dims& dims : {Dims{2, 5, 2, 3, 4}, Dims{2, 5, 2, 3, 2, 2}}) {
    const Tensor image = normed(dims);
    EXPECT_EQ(image.dims(), dims);
    for (std::int64_t i = 0; i < line.size(); ++i) ASSERT_EQ(image.as_double(i), line.as_double(i)) << i;
  }
}

}  // namespace
}  // namespace sylvite::operator_corners_test
