// Transposed convolutions against their definition. What remains of the strides is in the cases of the ONNX backend tests.

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/build/convolution.h"
#include "frontend/graph/interpreter.h"
#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"

namespace sylvite::transposed_conv_test {
namespace {

constexpr std::int64_t inputs = 2, rows = 4, columns = 5;

struct Window {
  std::int64_t kernel[2], strides[2], begin[2], end[2], more[2], dilations[2];
  std::int64_t convolutions;  ///< that it becomes
  std::int64_t channels = 9;

  [[nodiscard]] std::int64_t length(int axis, std::int64_t extent) const {
    return (extent - 1) * strides[axis] + (kernel[axis] - 1) * dilations[axis] + 1 + more[axis] -
           begin[axis] - end[axis];
  }
};

std::vector<float> numbers(std::int64_t count, std::int64_t seed) {
  std::vector<float> made;
  for (std::int64_t i = 0; i < count; ++i) made.push_back(static_cast<float>((i * i + seed * i) % 31 - 15));
  return made;
}

Graph graph_of(const Window& window, const std::vector<float>& weights, const std::vector<float>& bias) {
  onnx::ModelProto model = empty_model(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, inputs, rows, columns});
  add_floats(graph, "w", {inputs, window.channels, window.kernel[0], window.kernel[1]}, weights);
  add_floats(graph, "b", {window.channels}, bias);
  onnx::NodeProto& node = add_node(graph, "ConvTranspose", {"x", "w", "b"}, {"y"});
  set_integers(node, "strides", {window.strides[0], window.strides[1]});
  set_integers(node, "pads", {window.begin[0], window.begin[1], window.end[0], window.end[1]});
  set_integers(node, "output_padding", {window.more[0], window.more[1]});
  set_integers(node, "dilations", {window.dilations[0], window.dilations[1]});
  add_output(graph, "y");
  return import_onnx_bytes(model.SerializeAsString(), "", {});
}

/// Every element of x times the window, added where it stands.
std::vector<float> by_definition(const Window& window, const std::vector<float>& x,
                                 const std::vector<float>& weights, const std::vector<float>& bias) {
  const std::int64_t height = window.length(0, rows), width = window.length(1, columns);
  std::vector<float> y;
  for (const float each : bias) y.insert(y.end(), static_cast<std::size_t>(height * width), each);
  const std::int64_t taps = window.kernel[0] * window.kernel[1];
  for (std::int64_t i = 0; i < inputs * rows * columns; ++i) {
    const std::int64_t channel = i / (rows * columns), row = i / columns % rows, column = i % columns;
    for (std::int64_t at = 0; at < window.channels * taps; ++at) {
      const std::int64_t tap = at % taps;
      const std::int64_t to_row =
          row * window.strides[0] + tap / window.kernel[1] * window.dilations[0] - window.begin[0];
      const std::int64_t to_column =
          column * window.strides[1] + tap % window.kernel[1] * window.dilations[1] - window.begin[1];
      if (to_row < 0 || to_row >= height || to_column < 0 || to_column >= width) continue;
      y[static_cast<std::size_t>((at / taps * height + to_row) * width + to_column)] +=
          x[static_cast<std::size_t>(i)] *
          weights[static_cast<std::size_t>(channel * window.channels * taps + at)];
    }
  }
  return y;
}

TEST(TransposedConv, PhasesWithFewerTapsAreConvolutionsOfTheirOwn) {
  const Window windows[] = {{{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 4},
                            {{3, 3}, {2, 2}, {0, 0}, {0, 0}, {0, 0}, {1, 1}, 4},
                            {{3, 3}, {2, 2}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 4},
                            {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1, 3},
                            {{4, 4}, {3, 3}, {0, 0}, {0, 0}, {0, 0}, {1, 1}, 3},
                            {{5, 5}, {3, 3}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 3},
                            {{5, 5}, {2, 2}, {2, 2}, {2, 2}, {1, 1}, {1, 1}, 1},
                            {{7, 2}, {3, 2}, {0, 0}, {0, 0}, {1, 0}, {1, 1}, 2},
                            {{2, 3}, {1, 2}, {0, 3}, {1, 0}, {0, 1}, {1, 1}, 2},
                            {{3, 2}, {2, 2}, {0, 0}, {1, 0}, {0, 0}, {3, 1}, 2},
                            {{4, 4}, {2, 2}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1},
                            {{2, 1}, {3, 2}, {0, 0}, {0, 0}, {0, 0}, {1, 1}, 1}};
  for (const Window& window : windows) {
    const std::vector<float> weights =
        numbers(inputs * window.channels * window.kernel[0] * window.kernel[1], 3);
    const std::vector<float> bias = numbers(window.channels, 5), x = numbers(inputs * rows * columns, 7);
    const Graph graph = graph_of(window, weights, bias);
    EXPECT_EQ(std::ranges::count(graph.nodes(), Op::conv, &Node::op), window.convolutions)
        << window.kernel[0] << "x" << window.kernel[1];
    const Tensor y = interpret(graph, {Tensor::of(DType::f32, {1, inputs, rows, columns}, x)}).at(0);
    ASSERT_EQ(y.dims(), (Dims{1, window.channels, window.length(0, rows), window.length(1, columns)}));
    const std::vector<float> wanted = by_definition(window, x, weights, bias);
    for (std::int64_t i = 0; i < y.size(); ++i)
      ASSERT_EQ(y.as_double(i), wanted[static_cast<std::size_t>(i)])
          << window.kernel[0] << "x" << window.kernel[1] << " at " << i;
  }
}

/// Groups by themselves, side by side.
Sym of_groups(Sym x, Sym w, Sym bias, const TransposedWindow& window, std::int64_t groups) {
  std::vector<Sym> parts;
  const std::int64_t in = w.dim(0) / groups, out = w.dim(1);
  for (std::int64_t g = 0; g < groups; ++g)
    parts.push_back(transposed_conv(slice(x, 1, g * in, (g + 1) * in), slice(w, 0, g * in, (g + 1) * in),
                                    slice(bias, 0, g * out, (g + 1) * out), window, 1));
  return concat(parts, 1);
}

TEST(TransposedConv, GroupsAreConvolutionsOfTheirOwn) {
  for (const bool innermost : {false, true})
    for (const std::int64_t in : {1, 3})
      for (const Dims& strides : {Dims{1, 1}, Dims{2, 3}, Dims{4, 2}}) {
        const TransposedWindow window{strides, {1, 1}, {0, 0}, {1, 0}, {0, 1}, innermost};
        Graph graph;
        GraphBuilder builder(graph);
        const Sym x = builder.input("x", DType::f32, {2, 2 * in, 4, 5}),
                  w = builder.input("w", DType::f32, {2 * in, 3, 3, 2}),
                  bias = builder.input("b", DType::f32, {6});
        graph.outputs = {transposed_conv(x, w, bias, window, 2).id(), of_groups(x, w, bias, window, 2).id()};
        const std::vector<Tensor> results =
            interpret(graph, {Tensor::of(DType::f32, {2, 2 * in, 4, 5}, numbers(80 * in, 3)),
                              Tensor::of(DType::f32, {2 * in, 3, 3, 2}, numbers(36 * in, 5)),
                              Tensor::of(DType::f32, {6}, numbers(6, 7))});
        ASSERT_EQ(results.at(0).dims(), results.at(1).dims());
        for (std::int64_t i = 0; i < results[0].size(); ++i)
          ASSERT_EQ(results[0].as_double(i), results[1].as_double(i)) << in << " of a group, at " << i;
      }
}

}  // namespace
}  // namespace sylvite::transposed_conv_test
