// Quantised models: what ONNX defines is computed in f32, to the bit.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "frontend/onnx/importer.h"
#include "tests/frontend/onnx/onnx_model.h"
#include "tests/runtime/test_session.h"

namespace sylvite::quantised_test {
namespace {

template <typename Values>
void add_bytes(onnx::GraphProto& graph, const std::string& name, const Dims& dims, const Values& values,
               int type) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  for (const std::int64_t dim : dims) tensor.add_dims(dim);
  for (const int value : values) tensor.add_int32_data(value);
}

std::vector<Tensor> run_once(const onnx::ModelProto& model, const std::vector<Tensor>& inputs) {
  const TemporaryFolder folder;
  Built built = build_graph(import_onnx_bytes(model.SerializeAsString(), ""), test_options(folder.path()));
  return built.program.run(inputs);
}

/// saturate(round_half_even(x / scale) + zero_point), as ONNX defines it.
int quantised(float x, float scale, int zero_point) {
  const float y = std::nearbyint(x / scale) + static_cast<float>(zero_point);
  return static_cast<int>(std::min(std::max(y, 0.0F), 255.0F));
}

TEST(QuantisedTest, QuotientsAreDividedAndRoundedToEven) {
  const float scale = 0.0372541F;
  const int zero_point = 117;
  std::vector<float> values;
  for (int k = -300; k < 300; ++k) {
    const auto tie = static_cast<float>((k + 0.5) * static_cast<double>(scale));
    for (const float end : {-1e9F, tie, 1e9F}) values.push_back(std::nextafter(tie, end));
  }
  const auto count = static_cast<std::int64_t>(values.size());
  onnx::ModelProto model = empty_model(13);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {count});
  add_floats(graph, "scale", {}, {scale});
  add_bytes(graph, "zero", {}, std::vector<int>{zero_point}, onnx::TensorProto::UINT8);
  add_node(graph, "QuantizeLinear", {"x", "scale", "zero"}, {"q"});
  add_node(graph, "DequantizeLinear", {"q", "scale", "zero"}, {"y"});
  add_output(graph, "q");
  add_output(graph, "y");
  Tensor x(DType::f32, {count});
  for (std::int64_t i = 0; i < count; ++i) x.set_double(i, values[static_cast<std::size_t>(i)]);
  const std::vector<Tensor> outputs = run_once(model, {x});
  int by_reciprocal = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = values[static_cast<std::size_t>(i)];
    const int expected = quantised(value, scale, zero_point);
    ASSERT_EQ(outputs[0].as_int64(i), expected) << value;
    ASSERT_EQ(outputs[1].as_double(i), static_cast<float>(expected - zero_point) * scale) << value;
    if (quantised(value * (1 / scale), 1, zero_point) != expected) ++by_reciprocal;
  }
  EXPECT_GT(by_reciprocal, 0) << "the values do not tell a division from a multiplication";
}

struct Block {
  static constexpr int channels = 19, outputs = 21, side = 9;
  static constexpr float x_scale = 1.0F / 32, w_scale = 1.0F / 128, y_scale = 1.0F / 4;
  static constexpr int x_zero = 121;
  std::vector<int> weights, biases;

  Block() {
    for (int i = 0; i < outputs * channels * 9; ++i) weights.push_back((i * 37 + i / 5) % 255 - 127);
    for (int i = 0; i < outputs; ++i) biases.push_back((i * 977) % 4001 - 2000);
  }
  [[nodiscard]] static int at(int c, int y, int x) { return ((c * 53 + y * 29 + x * 17) * 7) % 256; }

  /// In integers.
  [[nodiscard]] int result(int o, int y, int x) const {
    std::int64_t sum = biases[static_cast<std::size_t>(o)];
    for (int c = 0; c < channels; ++c) {
      for (int i = 0; i < 9; ++i) {
        const int v = y + i / 3 - 1;
        const int u = x + i % 3 - 1;
        if (v < 0 || v >= side || u < 0 || u >= side) continue;
        const int weight = (o * channels + c) * 9 + i;
        sum += std::int64_t{at(c, v, u) - x_zero} * weights[static_cast<std::size_t>(weight)];
      }
    }
    const float real = static_cast<float>(std::max<std::int64_t>(sum, 0)) * (x_scale * w_scale);
    return quantised(real, y_scale, 0);
  }

  [[nodiscard]] onnx::ModelProto model() const {
    onnx::ModelProto model = empty_model(13);
    onnx::GraphProto& graph = *model.mutable_graph();
    add_input(graph, "image", {1, channels, side, side});
    add_floats(graph, "xs", {}, {x_scale});
    add_floats(graph, "ws", {}, {w_scale});
    add_floats(graph, "bs", {}, {x_scale * w_scale});
    add_floats(graph, "ys", {}, {y_scale});
    add_bytes(graph, "xz", {}, std::vector<int>{x_zero}, onnx::TensorProto::UINT8);
    add_bytes(graph, "yz", {}, std::vector<int>{0}, onnx::TensorProto::UINT8);
    add_bytes(graph, "w8", {outputs, channels, 3, 3}, weights, onnx::TensorProto::INT8);
    add_bytes(graph, "b32", {outputs}, biases, onnx::TensorProto::INT32);
    add_node(graph, "QuantizeLinear", {"image", "xs", "xz"}, {"x8"});
    add_node(graph, "DequantizeLinear", {"x8", "xs", "xz"}, {"x"});
    add_node(graph, "DequantizeLinear", {"w8", "ws"}, {"w"});
    add_node(graph, "DequantizeLinear", {"b32", "bs"}, {"b"});
    set_integers(add_node(graph, "Conv", {"x", "w", "b"}, {"sum"}), "pads", {1, 1, 1, 1});
    add_node(graph, "Relu", {"sum"}, {"positive"});
    add_node(graph, "QuantizeLinear", {"positive", "ys", "yz"}, {"y8"});
    add_output(graph, "y8");
    return model;
  }
};

TEST(QuantisedTest, ConvIntegerSumsBeyondWhatF32Holds) {
  const std::int64_t channels = 600;
  onnx::ModelProto model = empty_model(10);
  onnx::GraphProto& graph = *model.mutable_graph();
  add_input(graph, "x", {1, channels, 4, 4}, onnx::TensorProto::UINT8);
  add_bytes(graph, "w", {2, channels, 3, 3},
            std::vector<int>(static_cast<std::size_t>(2 * channels * 9), 127), onnx::TensorProto::INT8);
  add_node(graph, "ConvInteger", {"x", "w"}, {"y"});
  add_output(graph, "y");
  Tensor x(DType::u8, {1, channels, 4, 4});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_int64(i, 255);
  const Tensor y = run_once(model, {x})[0];
  ASSERT_EQ(y.type(), make_type(DType::i32, {1, 2, 2, 2}));
  for (std::int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.as_int64(i), channels * 255 * 127 * 9);
}

/// With powers of two for scales every sum is exact, so the order of sums cannot be an excuse.
TEST(QuantisedTest, AConvolutionBetweenQuantisationsIsExact) {
  const Block block;
  Tensor image(DType::f32, {1, Block::channels, Block::side, Block::side});
  for (int i = 0; i < image.size(); ++i) {
    const int c = i / (Block::side * Block::side);
    const int at = Block::at(c, i / Block::side % Block::side, i % Block::side);
    image.set_double(i, (at - Block::x_zero) * Block::x_scale);
  }
  const Tensor y = run_once(block.model(), {image})[0];
  ASSERT_EQ(y.type(), make_type(DType::u8, {1, Block::outputs, Block::side, Block::side}));
  for (int i = 0; i < y.size(); ++i) {
    const int o = i / (Block::side * Block::side);
    ASSERT_EQ(y.as_int64(i), block.result(o, i / Block::side % Block::side, i % Block::side))
        << "element " << i;
  }
}

}  // namespace
}  // namespace sylvite::quantised_test
