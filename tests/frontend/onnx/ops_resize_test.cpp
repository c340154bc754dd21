// Special values through interpolation; that it is right is for the cases of the ONNX backend tests.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::ops_resize_test {
namespace {

/// Lines of four elements, as many as `lines`, to lines of eight.
onnx::ModelProto resizing_model(const std::string& mode, std::int64_t lines) {
  onnx::ModelProto model = empty_model(19);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {lines, 1, 1, 4});
  add_floats(graph, "scales", {4}, {1, 1, 1, 2});
  set_text(add_node(graph, "Resize", {"x", "", "scales"}, {"y"}), "mode", mode);
  add_output(graph, "y");
  return model;
}

/// Eight elements of a line of four, by `mode`.
Tensor resized(const std::string& mode, const std::vector<float>& line) {
  const onnx::ModelProto model = resizing_model(mode, 1);
  Tensor x(DType::f32, {1, 1, 1, 4});
  for (std::int64_t i = 0; i < 4; ++i) x.set_double(i, line.at(static_cast<std::size_t>(i)));
  return interpret(import_onnx_bytes(model.SerializeAsString(), "", {}), {x}).at(0);
}

TEST(OnnxResize, InterpolatesBetweenNeighbours) {
  const Tensor y = resized("linear", {0, 4, 8, 12});
  const double wanted[] = {0, 1, 3, 5, 7, 9, 11, 12};
  for (std::int64_t i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(y.as_double(i), wanted[i]);
}

/// As ONNX Runtime and ONNX's reference do, once for both axes.
TEST(OnnxResize, WhatIsInterpolatedOfIntegersIsCut) {
  onnx::ModelProto model = empty_model(19);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, 1, 2, 2}, onnx::TensorProto::INT8);
  add_floats(graph, "scales", {4}, {1, 1, 2, 2});
  set_text(add_node(graph, "Resize", {"x", "", "scales"}, {"y"}), "mode", "linear");
  add_output(graph, "y");
  Tensor x(DType::i8, {1, 1, 2, 2});
  for (std::int64_t i = 0; i < 4; ++i) x.set_int64(i, i == 0 ? -3 : i == 3 ? 3 : 0);
  const Tensor y = interpret(import_onnx_bytes(model.SerializeAsString(), "", {}), {x}).at(0);
  EXPECT_EQ(y.to_int64s(), (std::vector<std::int64_t>{-3, -2, 0, 0, -2, -1, 0, 0, 0, 0, 1, 2, 0, 0, 2, 3}));
}

/// As ONNX infers shapes: 240 by the f32 next to 0.7 are 168, though their product is below it.
TEST(OnnxResize, ExtentsAreProductsInF32) {
  onnx::ModelProto model = empty_model(19);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {240, 10});
  add_floats(graph, "scales", {2}, {0.7F, 1.5F});
  add_node(graph, "Resize", {"x", "", "scales"}, {"y"});
  add_output(graph, "y");
  const Graph graph_of = import_onnx_bytes(model.SerializeAsString(), "", {});
  EXPECT_EQ(graph_of.type(graph_of.outputs[0]).dims(), (Dims{168, 15}));
}

/// Nearest elements of 0, 1, 2, ...
std::vector<std::int64_t> nearest(std::int64_t from, float scale, const char* transform,
                                  const char* rounding) {
  onnx::ModelProto model = empty_model(11);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {from}, onnx::TensorProto::INT64);
  add_floats(graph, "roi", {0}, {});
  add_floats(graph, "scales", {1}, {scale});
  onnx::NodeProto& node = add_node(graph, "Resize", {"x", "roi", "scales"}, {"y"});
  set_text(node, "mode", "nearest");
  set_text(node, "coordinate_transformation_mode", transform);
  set_text(node, "nearest_mode", rounding);
  add_output(graph, "y");
  Tensor x(DType::i64, {from});
  for (std::int64_t i = 0; i < from; ++i) x.set_int64(i, i);
  return interpret(import_onnx_bytes(model.SerializeAsString(), "", {}), {x}).at(0).to_int64s();
}

/// What ONNX Runtime 1.32 and ONNX's reference give: 6 by the f32 next to 1.2, which is above it, is 5 in f32.
TEST(OnnxResize, NearestElementsAreFoundInF32) {
  EXPECT_EQ(nearest(7, 1.2F, "asymmetric", "floor"), (std::vector<std::int64_t>{0, 0, 1, 2, 3, 4, 5, 5}));
  EXPECT_EQ(nearest(7, 1.6F, "asymmetric", "floor"),
            (std::vector<std::int64_t>{0, 0, 1, 1, 2, 3, 3, 4, 5, 5, 6}));
  EXPECT_EQ(nearest(7, 1.7F, "half_pixel", "round_prefer_ceil"),
            (std::vector<std::int64_t>{0, 0, 1, 2, 2, 3, 3, 4, 5, 5, 6}));
}

/// 10.5 by 70 / 100 is 15 in f32, a tie of 14 and 15; by the quotient of doubles it is above.
TEST(OnnxResize, ScalesOfSizesAreF32) {
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {100}, onnx::TensorProto::INT64);
  add_integers(graph, "sizes", {70});
  set_text(add_node(graph, "Resize", {"x", "", "", "sizes"}, {"y"}), "mode", "nearest");
  add_output(graph, "y");
  Tensor x(DType::i64, {100});
  for (std::int64_t i = 0; i < 100; ++i) x.set_int64(i, i);
  const Graph graph_of = import_onnx_bytes(model.SerializeAsString(), "", {});
  EXPECT_EQ(interpret(graph_of, {x}).at(0).as_int64(10), 14);
}

TEST(OnnxResize, NearestElementsAsTensorFlowHasThem) {
  EXPECT_EQ(nearest(4, 1.5F, "tf_half_pixel_for_nn", "floor"), (std::vector<std::int64_t>{0, 1, 1, 2, 3, 3}));
  EXPECT_EQ(nearest(4, 1.5F, "half_pixel", "floor"), (std::vector<std::int64_t>{0, 0, 1, 1, 2, 3}));
}

TEST(OnnxResize, OfNoImagesThereAreNone) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    const Tensor none(DType::f32, {0, 1, 1, 4});
    const std::string bytes = resizing_model(mode, 0).SerializeAsString();
    EXPECT_EQ(interpret(import_onnx_bytes(bytes, "", {}), {none}).at(0).dims(), (Dims{0, 1, 1, 8})) << mode;
  }
}

/// Sums of what a filter covers, not products with the whole axis.
TEST(OnnxResize, FiltersOfLongAxesReadWhatTheyCover) {
  onnx::ModelProto model = empty_model(19);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {160});
  add_floats(graph, "scales", {1}, {0.25});
  onnx::NodeProto& node = add_node(graph, "Resize", {"x", "", "scales"}, {"y"});
  set_text(node, "mode", "linear");
  set_integer(node, "antialias", 1);
  add_output(graph, "y");
  Tensor x(DType::f32, {160});
  for (std::int64_t i = 0; i < 160; ++i)
    x.set_double(i, i < 159 ? static_cast<double>(i) : std::numeric_limits<double>::infinity());
  const Tensor y = interpret(import_onnx_bytes(model.SerializeAsString(), "", {}), {x}).at(0);
  for (std::int64_t i = 1; i < 39; ++i)
    EXPECT_NEAR(y.as_double(i), 4 * static_cast<double>(i) + 1.5, 1e-4) << i;
  EXPECT_TRUE(std::isinf(y.as_double(39)));
}

TEST(OnnxResize, SpecialValuesReachTheirNeighboursOnly) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float special : {nan, infinity}) {
    const Tensor linear = resized("linear", {1, 2, 3, special});
    const Tensor cubic = resized("cubic", {1, 2, 3, special});
    for (std::int64_t i = 0; i < 8; ++i) {
      EXPECT_EQ(std::isfinite(linear.as_double(i)), i < 5) << i;
      EXPECT_EQ(std::isfinite(cubic.as_double(i)), i < 3) << i;
    }
  }
}

}  // namespace
}  // namespace sylvite::ops_resize_test
