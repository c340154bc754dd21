#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::widen_channels_test {
namespace {

std::vector<std::int64_t> channels_of_convolutions(const Graph& graph) {
  std::vector<std::int64_t> channels;
  for (const Node& node : graph.nodes())
    if (node.op == Op::conv) channels.push_back(graph.type(node.outputs[0]).dims()[1]);
  return channels;
}

void expect_equal(const Graph& before, const Graph& after) {
  const std::vector<Tensor> inputs = random_inputs(before);
  const std::vector<Tensor> wanted = interpret(before, inputs), got = interpret(after, inputs);
  ASSERT_EQ(wanted.size(), got.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(wanted[i].dims(), got[i].dims());
    for (std::int64_t k = 0; k < wanted[i].size(); ++k)
      ASSERT_NEAR(wanted[i].as_double(k), got[i].as_double(k), 1e-5) << "output " << i << " at " << k;
  }
}

TEST(WidenChannels, ThroughWorkPoolingAndGroups) {
  Graph graph;
  ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 6, 8})), 10, 3);
  const ValueId skip = x;
  x = graph.add(Op::relu, {graph.add(Op::add, {x, weight(graph, {1, 10, 1, 1})})});
  x = conv(graph, x, 10, 3, 10);
  x = graph.add(Op::add, {x, skip});
  x = graph.add(Op::max_pool, {x},
                {{"kernel", Dims{2, 2}},
                 {"strides", Dims{2, 2}},
                 {"pads", Dims{0, 0, 0, 0}},
                 {"dilations", Dims{1, 1}}});
  const ValueId gate = graph.add(
      Op::sigmoid,
      {conv(graph, graph.add(Op::reduce_sum, {x}, {{"axes", Dims{2, 3}}, {"keepdims", std::int64_t{1}}}), 10,
            1)});
  x = graph.add(Op::mul, {x, gate});
  graph.outputs = {conv(graph, x, 16, 1), graph.add(Op::exp, {x})};
  const Graph wide = widen_channels(graph, true);
  EXPECT_EQ(channels_of_convolutions(wide), (std::vector<std::int64_t>{12, 12, 12, 16}));
  // Only what the exponential reads is cut.
  EXPECT_EQ(std::ranges::count_if(wide.nodes(), [](const Node& node) { return node.op == Op::slice; }), 1);
  expect_equal(graph, wide);
}

TEST(WidenChannels, ConcatsGetZerosBehind) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({1, 8, 5, 5}));
  const ValueId both =
      graph.add(Op::concat, {conv(graph, x, 7, 1), conv(graph, x, 6, 3)}, {{"axis", std::int64_t{1}}});
  graph.outputs = {conv(graph, both, 4, 3)};
  const Graph wide = widen_channels(graph, true);
  EXPECT_EQ(channels_of_convolutions(wide), (std::vector<std::int64_t>{8, 8, 4}));
  for (const Node& node : wide.nodes())
    if (node.op == Op::concat) EXPECT_EQ(wide.type(node.outputs[0]).dims()[1], 16);
  expect_equal(graph, wide);
}

TEST(WidenChannels, ZerosBehindAPictureAreOfItsPart) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({1, 3, 5, 5}));
  const ValueId both = graph.add(Op::concat, {conv(graph, x, 16, 3), x}, {{"axis", std::int64_t{1}}});
  graph.outputs = {conv(graph, both, 4, 3)};
  const Graph wide = widen_channels(graph, true);
  for (const Node& node : wide.nodes())
    if (node.op == Op::concat) {
      EXPECT_EQ(node.inputs.size(), 2U);
      EXPECT_EQ(wide.type(node.inputs[1]).dims()[1], 4);
    }
  expect_equal(graph, wide);
}

TEST(WidenChannels, WorkOnOneChannelIsWideWhereTheChannelIs) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 1, 5, 8}));
  const ValueId one = graph.add(Op::add, {conv(graph, x, 1, 3), graph.add_input("b", f32({2, 1, 5, 8}))});
  const ValueId many = graph.add(Op::mul, {conv(graph, x, 6, 1), one});
  graph.outputs = {conv(graph, one, 1, 3), conv(graph, many, 8, 1)};
  const Graph wide = widen_channels(graph, true);
  EXPECT_EQ(channels_of_convolutions(wide), (std::vector<std::int64_t>{4, 8, 4, 8}));
  expect_equal(graph, wide);
}

TEST(WidenChannels, PartsAreCutFromTheWideValue) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({1, 8, 5, 5})), 11, 1);
  const auto part = [&](std::int64_t first, std::int64_t count) {
    return graph.add(
        Op::slice, {x},
        {{"starts", Dims{0, first, 0, 0}}, {"sizes", Dims{1, count, 5, 5}}, {"steps", Dims{1, 1, 1, 1}}});
  };
  graph.outputs = {conv(graph, part(0, 5), 8, 3), conv(graph, part(5, 6), 8, 1)};
  const Graph wide = widen_channels(graph, true);
  for (const Node& node : wide.nodes())
    if (node.op == Op::slice) EXPECT_EQ(wide.type(node.inputs[0]).dims()[1], 12);
  for (const Node& node : wide.nodes())
    if (node.op == Op::conv) EXPECT_EQ(wide.type(node.inputs[0]).dims()[1], 8);
  expect_equal(graph, wide);
}

/// A pad, as a resize would, of one channel: in eight it is worth only what a convolution saves that reads it.
TEST(WidenChannels, OneChannelIsHandedOnToConvolutionsAlone) {
  for (const bool feeds : {false, true}) {
    Graph graph;
    const ValueId one = conv(graph, graph.add_input("x", f32({2, 8, 4, 6})), 1, 3);
    const ValueId padded = graph.add(Op::pad, {one}, {{"low", Dims{0, 0, 1, 1}}, {"high", Dims{0, 0, 1, 1}}});
    graph.outputs = {feeds ? conv(graph, padded, 8, 3) : padded};
    const Graph wide = widen_channels(graph, true);
    for (const Node& node : wide.nodes())
      if (node.op == Op::pad) EXPECT_EQ(wide.type(node.inputs[0]).dims()[1], feeds ? 4 : 1);
    expect_equal(graph, wide);
  }
}

TEST(WidenChannels, WhatMayMakeInfinitiesOfZerosIsNarrow) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({1, 8, 5, 5})), 6, 1);
  const ValueId inverse = graph.add(Op::div, {scalar(graph, 1), x});
  graph.outputs = {conv(graph, inverse, 8, 1)};
  const Graph wide = widen_channels(graph, true);
  expect_equal(graph, wide);
  for (const Node& node : wide.nodes())
    if (node.op == Op::div) EXPECT_EQ(wide.type(node.outputs[0]).dims()[1], 6);
}

/// Vectors of 16 bytes have other numbers of channels in another type: what is converted keeps those that it has.
TEST(WidenChannels, ConvertedChannelsKeepTheirNumber) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 8, 6, 8}));
  const auto converted = [&] {
    return graph.add(Op::cast, {conv(graph, x, 2, 3)}, {{"to", std::string("bf16")}});
  };
  Tensor shift(DType::bf16, {1, 2, 1, 1});
  for (int i = 0; i < 2; ++i) shift.set_double(i, 0.5 + i);
  const ValueId first = graph.add(Op::add, {converted(), graph.add_constant(shift)});
  const ValueId sum = graph.add(Op::add, {first, converted()});
  graph.outputs = {conv(graph, graph.add(Op::cast, {sum}, {{"to", std::string("f32")}}), 8, 1)};
  const Graph wide = widen_channels(graph, true);
  EXPECT_EQ(channels_of_convolutions(wide), (std::vector<std::int64_t>{4, 4, 8}));
  expect_equal(graph, wide);
}

TEST(WidenChannels, WholeVectorsStay) {
  Graph graph;
  graph.outputs = {conv(graph, conv(graph, graph.add_input("x", f32({1, 3, 5, 5})), 8, 3), 4, 3)};
  EXPECT_TRUE(same_structure(widen_channels(graph, true), graph));
  EXPECT_TRUE(same_structure(widen_channels(graph, false), graph));
}

}  // namespace
}  // namespace sylvite::widen_channels_test
