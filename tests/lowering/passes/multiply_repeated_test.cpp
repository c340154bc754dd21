#include "lowering/passes/multiply_repeated.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::multiply_repeated_test {
namespace {

/// A product by weights of parts of so many dims, side by side, each broadcast to [.., rows, its depth].
Graph product_of(const std::vector<Dims>& parts, const Dims& rows) {
  Graph graph;
  std::vector<ValueId> values;
  std::int64_t depth = 0;
  for (const Dims& part : parts) {
    const ValueId value = graph.add_input("x" + std::to_string(values.size()), f32(part));
    Dims whole = rows;
    whole.push_back(part.empty() ? 1 : part.back());
    values.push_back(part == whole ? value : graph.add(Op::broadcast_to, {value}, {{"shape", whole}}));
    depth += whole.back();
  }
  Tensor weight(DType::f32, {depth, 5});
  for (std::int64_t i = 0; i < weight.size(); ++i) weight.set_double(i, static_cast<double>(i * 7 % 11) - 5);
  const ValueId concat = graph.add(Op::concat, values, {{"axis", static_cast<std::int64_t>(rows.size())}});
  graph.outputs = {graph.add(Op::matmul, {concat, graph.add_constant(weight)})};
  return graph;
}

TEST(MultiplyRepeated, WhatAllRowsHaveIsMultipliedOnce) {
  const std::vector<Dims> cases[] = {{{2, 256, 3}, {2, 1, 4}},
                                     {{2, 1, 4}, {2, 256, 3}, {2, 1, 2}},
                                     {{2, 256, 3}, {1, 4}, {2, 256, 2}},
                                     {{4}, {2, 256, 3}},
                                     {{2, 256, 3}, {}}};
  for (const std::vector<Dims>& parts : cases) {
    const Graph graph = product_of(parts, {2, 256}), made = multiply_repeated(graph);
    EXPECT_EQ(std::ranges::count_if(made.nodes(), [](const Node& node) { return node.op == Op::matmul; }), 2);
    const std::vector<Tensor> inputs = random_inputs(graph);
    const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(made, inputs).at(0);
    ASSERT_EQ(wanted.dims(), got.dims());
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(wanted.as_double(i), got.as_double(i), 1e-4);
  }
}

TEST(MultiplyRepeated, OthersStay) {
  const std::pair<std::vector<Dims>, Dims> cases[] = {
      {{{2, 256, 3}, {2, 256, 4}}, {2, 256}},            // nothing is repeated
      {{{2, 1, 3}, {2, 1, 4}}, {2, 256}},                // everything is
      {{{2, 255, 3}, {2, 1, 4}}, {2, 255}},              // for few rows
      {{{2, 256, 3}, {1, 256, 4}}, {2, 256}},            // of matrices, not of rows
      {{{2, 256, 3}, {2, 1, 4}, {1, 1, 4}}, {2, 256}}};  // in two ways
  for (const auto& [parts, rows] : cases) {
    const Graph graph = product_of(parts, rows);
    EXPECT_TRUE(same_structure(multiply_repeated(graph), graph));
  }
}

/// A convolution of one tap of parts side by side, each broadcast to [2, its channels, 8, 9].
Graph conv_of(const std::vector<Dims>& parts, const Dims& pixels, std::int64_t taps) {
  Graph graph;
  std::vector<ValueId> values;
  std::int64_t channels = 0;
  for (const Dims& part : parts) {
    const ValueId value = graph.add_input("x" + std::to_string(values.size()), f32(part));
    Dims whole = {2, part.size() > pixels.size() ? part[part.size() - 1 - pixels.size()] : 1};
    whole.insert(whole.end(), pixels.begin(), pixels.end());
    values.push_back(part == whole ? value : graph.add(Op::broadcast_to, {value}, {{"shape", whole}}));
    channels += whole[1];
  }
  Dims filter(pixels.size(), taps);
  filter.insert(filter.begin(), {5, channels});
  Tensor weight(DType::f32, filter), bias(DType::f32, {5});
  for (std::int64_t i = 0; i < weight.size(); ++i) weight.set_double(i, static_cast<double>(i * 7 % 11) - 5);
  for (std::int64_t i = 0; i < bias.size(); ++i) bias.set_double(i, static_cast<double>(i) - 2);
  const Dims ones(pixels.size(), 1), pads(2 * pixels.size(), taps / 2);
  const ValueId concat = graph.add(Op::concat, values, {{"axis", std::int64_t{1}}});
  graph.outputs = {
      graph.add(Op::conv, {concat, graph.add_constant(weight), graph.add_constant(bias)},
                {{"strides", ones}, {"dilations", ones}, {"pads", pads}, {"groups", std::int64_t{1}}})};
  return graph;
}

TEST(MultiplyRepeated, ChannelsThatAllPixelsHaveAreConvolvedOnce) {
  const std::pair<std::vector<Dims>, Dims> cases[] = {{{{2, 3, 8, 9}, {2, 4, 1, 1}}, {8, 9}},
                                                      {{{2, 4, 1}, {2, 3, 70}, {2, 2, 1}}, {70}},
                                                      {{{4, 1, 1}, {2, 3, 8, 9}, {2, 1, 8, 9}}, {8, 9}},
                                                      {{{2, 3, 8, 9}, {1}}, {8, 9}},
                                                      {{{}, {2, 3, 8, 9}, {1, 1}}, {8, 9}}};
  for (const auto& [parts, pixels] : cases) {
    const Graph graph = conv_of(parts, pixels, 1), made = multiply_repeated(graph);
    EXPECT_EQ(std::ranges::count_if(made.nodes(), [](const Node& node) { return node.op == Op::conv; }), 2);
    const std::vector<Tensor> inputs = random_inputs(graph);
    const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(made, inputs).at(0);
    ASSERT_EQ(wanted.dims(), got.dims());
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(wanted.as_double(i), got.as_double(i), 1e-4);
  }
  // Windows that leave the image meet zeros there.
  const Graph wide = conv_of({{2, 3, 8, 9}, {2, 4, 1, 1}}, {8, 9}, 3);
  EXPECT_TRUE(same_structure(multiply_repeated(wide), wide));
}

}  // namespace
}  // namespace sylvite::multiply_repeated_test
