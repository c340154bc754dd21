// Operators that place elements, beside plain loops.

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::placed_elements_test {
namespace {

Tensor numbered(const Dims& dims) {
  Tensor x(DType::f32, dims);
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i * 37 % 101) - 50);
  return x;
}

Tensor run(const onnx::ModelProto& model, const std::vector<Tensor>& inputs) {
  return interpret(import_onnx_bytes(model.SerializeAsString(), "", {}), inputs).at(0);
}

/// Along the first axis of an image; the second has blocks of two side by side.
struct Blocks {
  std::int64_t taps, stride, dilation, begin, end, extent;
  [[nodiscard]] std::int64_t count() const {
    return (extent + begin + end - dilation * (taps - 1) - 1) / stride + 1;
  }
};

TEST(OnnxCol2Im, AddsWhatMeetsAtAPlace) {
  constexpr std::int64_t width = 6;
  for (const Blocks& blocks : {Blocks{3, 1, 1, 1, 1, 5}, Blocks{3, 2, 1, 1, 0, 8}, Blocks{2, 2, 1, 0, 0, 6},
                               Blocks{3, 1, 2, 0, 2, 7}, Blocks{3, 2, 3, 2, 1, 9}, Blocks{2, 3, 1, 0, 0, 9},
                               Blocks{5, 2, 1, 2, 2, 7}}) {
    onnx::ModelProto model = empty_model(18);
    onnx::GraphProto& graph = *model.mutable_graph();
    const Dims dims{2, 3 * blocks.taps * 2, blocks.count() * width / 2};
    add_input(graph, "x", dims);
    add_integers(graph, "image", {blocks.extent, width});
    add_integers(graph, "block", {blocks.taps, 2});
    onnx::NodeProto& node = add_node(graph, "Col2Im", {"x", "image", "block"}, {"y"});
    set_integers(node, "strides", {blocks.stride, 2});
    set_integers(node, "dilations", {blocks.dilation, 1});
    set_integers(node, "pads", {blocks.begin, 0, blocks.end, 0});
    add_output(graph, "y");
    const Tensor x = numbered(dims);
    const Tensor y = run(model, {x});
    ASSERT_EQ(y.dims(), (Dims{2, 3, blocks.extent, width}));
    std::vector<double> wanted(static_cast<std::size_t>(y.size()));
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const std::int64_t place = i % dims[2], block = place / (width / 2), column = place % (width / 2);
      const std::int64_t tap = i / dims[2] % (blocks.taps * 2), map = i / dims[2] / (blocks.taps * 2);
      const std::int64_t row = block * blocks.stride + tap / 2 * blocks.dilation - blocks.begin;
      if (row < 0 || row >= blocks.extent) continue;
      const std::int64_t at = (map * blocks.extent + row) * width + column * 2 + tap % 2;
      wanted[static_cast<std::size_t>(at)] += x.as_double(i);
    }
    for (std::int64_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y.as_double(i), wanted[static_cast<std::size_t>(i)]);
  }
}

TEST(OnnxReverseSequence, TurnsWhatEachSequenceHas) {
  const Dims dims{4, 3, 2};
  const std::vector<std::int64_t> lengths[] = {{4, 1, 2}, {3, 2, 1, 2}};
  for (const std::int64_t time : {0, 1}) {
    onnx::ModelProto model = empty_model(18);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "x", dims);
    add_integers(graph, "lengths", lengths[time]);
    onnx::NodeProto& node = add_node(graph, "ReverseSequence", {"x", "lengths"}, {"y"});
    set_integer(node, "time_axis", time);
    set_integer(node, "batch_axis", 1 - time);
    add_output(graph, "y");
    const Tensor x = numbered(dims);
    const Tensor y = run(model, {x});
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const std::int64_t row = i / 6, column = i / 2 % 3;
      const std::int64_t length = lengths[time][static_cast<std::size_t>(time == 0 ? column : row)];
      const std::int64_t step = time == 0 ? row : column;
      const std::int64_t source = step < length ? length - 1 - step : step;
      const std::int64_t from = time == 0 ? source * 6 + column * 2 : row * 6 + source * 2;
      EXPECT_EQ(y.as_double(i), x.as_double(from + i % 2)) << i;
    }
  }
}

TEST(OnnxAffineGrid, MovesCoordinates) {
  for (const std::int64_t align_corners : {0, 1}) {
    onnx::ModelProto model = empty_model(20);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "theta", {2, 2, 3});
    add_integers(graph, "size", {2, 1, 3, 4});
    set_integer(add_node(graph, "AffineGrid", {"theta", "size"}, {"y"}), "align_corners", align_corners);
    add_output(graph, "y");
    const Tensor theta = numbered({2, 2, 3});
    const Tensor y = run(model, {theta});
    ASSERT_EQ(y.dims(), (Dims{2, 3, 4, 2}));
    const auto place = [&](std::int64_t i, double extent) {
      const auto at = static_cast<double>(i);
      return align_corners != 0 ? -1 + 2 * at / (extent - 1) : (2 * at + 1) / extent - 1;
    };
    for (std::int64_t i = 0; i < y.size(); ++i) {
      const std::int64_t row = i / 24 * 2 + i % 2;
      const double wanted = theta.as_double(row * 3) * place(i / 2 % 4, 4) +
                            theta.as_double(row * 3 + 1) * place(i / 8 % 3, 3) + theta.as_double(row * 3 + 2);
      EXPECT_NEAR(y.as_double(i), wanted, 1e-4) << i;
    }
  }
}

}  // namespace
}  // namespace sylvite::placed_elements_test
