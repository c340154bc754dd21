#include "frontend/passes/quantize_products.h"

#include <algorithm>
#include <cmath>

#include "frontend/passes/store_narrow.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::quantize_products_test {
namespace {

/// Numbers around zero, some columns and rows much larger than others.
Tensor uneven(const Dims& dims, double row_growth, double column_growth) {
  Tensor tensor(DType::f32, dims);
  const std::int64_t columns = dims.back();
  for (std::int64_t i = 0; i < tensor.size(); ++i) {
    const std::int64_t row = i / columns, column = i % columns;
    tensor.set_double(i, std::sin(1.7 * static_cast<double>(i)) *
                             std::pow(row_growth, static_cast<double>(row)) *
                             std::pow(column_growth, static_cast<double>(column)));
  }
  return tensor;
}

Graph product_graph(const Tensor& weight, const Dims& a) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, a));
  graph.outputs = {graph.add(Op::matmul, {x, graph.add_constant(weight, "w")})};
  return graph;
}

int count(const Graph& graph, Op op) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [&](const Node& node) { return node.op == op; }));
}

TEST(QuantizedMatmul, IsAsItsFormula) {
  // Ranges 3, 0.3 and none. 1 / 3 * 255 = 85, -2 / 3 * 255 = -170; 0.3 is 255 steps, 0.1 is 85.
  const Tensor x = reals({3, 2}, {1.0, -2.0, 0.3, 0.1, 0.0, 0.0});
  const Tensor b = ints({2, 2}, {127, -3, 5, 100}, DType::i8);
  const Tensor y =
      run(Op::quantized_matmul, {x, b, reals({2}, {0.5, 0.25}), ints({2}, {132, 97}, DType::i32)});
  const auto expected = [](int s0, int s1, int b0, int b1, float range, float scale) {
    return static_cast<double>(static_cast<float>(s0 * b0 + s1 * b1) * (range * (1.0F / 255)) * scale);
  };
  EXPECT_EQ(values(y),
            (std::vector<double>{expected(85, -170, 127, 5, 3, 0.5F), expected(85, -170, -3, 100, 3, 0.25F),
                                 expected(255, 85, 127, 5, 0.3F, 0.5F),
                                 expected(255, 85, -3, 100, 0.3F, 0.25F), 0, 0}));
}

/// Both ends lie half a step beyond whole ones: the zero point is 154, and the highest step would be 256.
TEST(QuantizedMatmul, StepsEndAtTheLargest) {
  const Tensor y = run(Op::quantized_matmul, {reals({1, 2}, {101.5, -153.5}), ints({2, 1}, {1, 0}, DType::i8),
                                              reals({1}, {1}), ints({1}, {1}, DType::i32)});
  EXPECT_EQ(y.as_double(0), 255 - 154);
}

TEST(QuantizedMatmul, RowsThatAreNotFiniteGiveNanAndTinyOnesZero) {
  const Tensor x =
      reals({6, 2}, {1, infinity, not_a_number, 1, -infinity, 0, 3e38, -3e38, 1e-38, -1e-38, 1, 1});
  const Tensor y = run(Op::quantized_matmul, {x, ints({2, 1}, {100, 27}, DType::i8), reals({1}, {1}),
                                              ints({1}, {127}, DType::i32)});
  for (int row = 0; row < 4; ++row) EXPECT_TRUE(std::isnan(y.as_double(row))) << row;
  EXPECT_EQ(y.as_double(4), 0);
  EXPECT_NEAR(y.as_double(5), 127, 1e-4);
}

TEST(QuantizedMatmul, RefusesOtherTypes) {
  Graph graph;
  const ValueId a = graph.add_input("a", make_type(DType::f32, {2, 3}));
  const ValueId b = graph.add_input("b", make_type(DType::i8, {4, 5}));
  const ValueId scales = graph.add_input("scales", make_type(DType::f32, {5}));
  const ValueId sums = graph.add_input("sums", make_type(DType::i32, {5}));
  EXPECT_THROW(graph.add(Op::quantized_matmul, {a, b, scales, sums}), ModelError);
}

/// Each operand is off by half a step of its row or column, at most.
TEST(QuantizeProducts, IsOffByTheRoundingOfBothOperands) {
  const std::int64_t k = 64;
  const Tensor weight = uneven({k, 48}, 1, 1.1);
  const Tensor x = uneven({5, k}, 3, 1);
  const Graph graph = product_graph(weight, x.dims());
  const Graph quantized = quantize_products(graph);
  verify(quantized);
  EXPECT_EQ(count(quantized, Op::quantized_matmul), 1);
  EXPECT_EQ(count(quantized, Op::matmul), 0);
  const Tensor exact = interpret(graph, {x})[0], rounded = interpret(quantized, {x})[0];
  double worst = 0;
  for (std::int64_t row = 0; row < 5; ++row) {
    for (std::int64_t column = 0; column < 48; ++column) {
      double allowed = 0, low = 0, high = 0, largest_w = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        low = std::min(low, x.as_double(row * k + i));
        high = std::max(high, x.as_double(row * k + i));
        largest_w = std::max(largest_w, std::abs(weight.as_double(i * 48 + column)));
      }
      // The zero point and an element are both rounded.
      const double x_error = (high - low) / 255;
      const double w_error = largest_w / 254;
      for (std::int64_t i = 0; i < k; ++i)
        allowed += std::abs(x.as_double(row * k + i)) * w_error +
                   std::abs(weight.as_double(i * 48 + column)) * x_error + x_error * w_error;
      const std::int64_t at = row * 48 + column;
      const double error = std::abs(exact.as_double(at) - rounded.as_double(at));
      EXPECT_LE(error, allowed * 1.001);
      worst = std::max(worst, error / ((high - low) * largest_w));
    }
  }
  EXPECT_GT(worst, 1e-4) << "something was rounded";
}

TEST(QuantizeProducts, TakesTheTransposeOfAConstant) {
  const Tensor weight = uneven({40, 64}, 1, 1);
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {2, 3, 64}));
  const ValueId turned = graph.add(Op::transpose, {graph.add_constant(weight, "w")}, {{"perm", Dims{1, 0}}});
  graph.outputs = {graph.add(Op::matmul, {x, turned})};
  const Graph quantized = quantize_products(graph);
  verify(quantized);
  EXPECT_EQ(count(quantized, Op::quantized_matmul), 1);
  EXPECT_EQ(count(quantized, Op::transpose), 0);
  const Tensor data = uneven({2, 3, 64}, 1.2, 1);
  const Tensor exact = interpret(graph, {data})[0], rounded = interpret(quantized, {data})[0];
  for (std::int64_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(rounded.as_double(i), exact.as_double(i), 0.3);
}

TEST(QuantizeProducts, KeepsItsConstantsWhenTheRestIsStoredAsBf16) {
  const Tensor weight = uneven({64, 48}, 1, 1.1);
  const Tensor x = uneven({5, 64}, 1, 1);
  const Graph graph = product_graph(weight, x.dims());
  const Graph quantized = quantize_products(graph);
  const Graph stored = store_narrow(quantized, DType::bf16);
  verify(stored);
  for (const Node& node : stored.nodes()) {
    if (node.op != Op::quantized_matmul) continue;
    EXPECT_EQ(stored.type(node.inputs[0]).dtype, DType::bf16);
    EXPECT_EQ(stored.type(node.inputs[1]).dtype, DType::i8);
    EXPECT_EQ(stored.type(node.inputs[2]).dtype, DType::f32);
    EXPECT_EQ(stored.type(node.inputs[3]).dtype, DType::i32);
    EXPECT_EQ(stored.type(node.outputs[0]).dtype, DType::bf16);
  }
  const Tensor exact = interpret(graph, {x})[0], rounded = interpret(stored, {x})[0];
  double scale = 0;
  for (std::int64_t i = 0; i < exact.size(); ++i) scale = std::max(scale, std::abs(exact.as_double(i)));
  for (std::int64_t i = 0; i < exact.size(); ++i)
    EXPECT_NEAR(rounded.as_double(i), exact.as_double(i), 0.05 * scale) << "most of the terms cancel";
}

TEST(QuantizeProducts, LeavesTheRest) {
  const auto expect_left = [](const Graph& graph) {
    EXPECT_EQ(count(quantize_products(graph), Op::quantized_matmul), 0);
  };
  expect_left(product_graph(uneven({16, 64}, 1, 1), {3, 16}));  // few rows
  expect_left(product_graph(uneven({64, 10}, 1, 1), {3, 64}));  // few columns
  Tensor infinite = uneven({64, 64}, 1, 1);
  infinite.set_double(70, infinity);
  expect_left(product_graph(infinite, {3, 64}));
  Graph computed;
  const ValueId a = computed.add_input("a", make_type(DType::f32, {64, 64}));
  computed.outputs = {computed.add(Op::matmul, {a, a})};
  expect_left(computed);
}

}  // namespace
}  // namespace sylvite::quantize_products_test
