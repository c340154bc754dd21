#include <gmock/gmock.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::convolve_planes_test {
namespace {

struct Case {
  Dims x = {};       ///< N, C, and one or three extents
  Dims window = {};  ///< of as many extents
  std::int64_t filters = 6;
  std::int64_t groups = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  Dims pads = {};           ///< before and behind; none: empty
  bool is_trained = false;  ///< the filter is an input
};

ValueId volume_conv(Graph& graph, ValueId x, const Case& c, std::uint32_t seed = 3) {
  const std::size_t rank = c.window.size();
  Dims filter = {c.filters, graph.type(x).dims()[1] / c.groups};
  filter.insert(filter.end(), c.window.begin(), c.window.end());
  const ValueId weights = c.is_trained ? graph.add_input("filter", f32(filter)) : weight(graph, filter, seed);
  return graph.add(Op::conv, {x, weights, weight(graph, {c.filters}, seed + 1)},
                   {{"strides", Dims(rank, c.stride)},
                    {"dilations", Dims(rank, c.dilation)},
                    {"pads", c.pads.empty() ? Dims(2 * rank, 0) : c.pads},
                    {"groups", c.groups}});
}

bool is_over_planes(const Graph& graph) {
  return std::ranges::all_of(graph.nodes(), [&](const Node& node) {
    return node.op != Op::conv || graph.type(node.inputs[0]).rank() == 4;
  });
}

TEST(ConvolvePlanes, SignalsAndVolumesKeepTheirResults) {
  for (const Case& c :
       {Case{.x = {2, 4, 19}, .window = {3}, .pads = {1, 1}},
        {.x = {1, 6, 23}, .window = {5}, .groups = 6, .stride = 2, .pads = {3, 0}},
        {.x = {1, 1, 40}, .window = {10}, .stride = 5},
        {.x = {2, 4, 19}, .window = {3}, .groups = 2, .dilation = 3, .pads = {3, 3}},
        {.x = {1, 3, 5, 7, 6}, .window = {3, 3, 3}, .pads = {1, 1, 1, 1, 1, 1}},
        {.x = {2, 4, 6, 5, 7}, .window = {3, 1, 3}, .stride = 2, .pads = {2, 0, 1, 0, 0, 2}},
        {.x = {2, 4, 7, 5, 5}, .window = {2, 2, 2}, .dilation = 2, .pads = {1, 1, 0, 1, 0, 1}},
        {.x = {2, 4, 3, 5, 5}, .window = {1, 3, 3}, .groups = 2, .pads = {0, 1, 1, 0, 1, 1}},
        {.x = {2, 8, 5, 4, 6}, .window = {3, 3, 3}, .filters = 8, .pads = {1, 1, 1, 1, 1, 1}},
        {.x = {1, 4, 4, 3, 3}, .window = {1, 1, 1}, .stride = 2}}) {
    for (const bool is_trained : {false, true}) {
      Case given = c;
      given.is_trained = is_trained;
      Graph graph;
      graph.outputs = {volume_conv(graph, graph.add_input("x", f32(c.x)), given)};
      EXPECT_TRUE(is_over_planes(convolve_planes(graph, false)));
      EXPECT_EQ(is_over_planes(convolve_planes(graph, true)), c.x.size() == 3) << "templates take volumes";
      expect_lowers_faithfully(graph);
    }
  }
}

TEST(ConvolvePlanes, WhatDiffersByImageIsNotByChannel) {
  Graph graph;
  const ValueId conv =
      volume_conv(graph, graph.add_input("x", f32({3, 2, 9})), {.x = {}, .window = {2}, .filters = 1});
  graph.outputs = {graph.add(Op::sub, {conv, graph.add_input("means", f32({3, 1, 1}))})};
  expect_lowers_faithfully(graph);
}

/// Two convolutions with a bias by channel, a residual and relu between.
TEST(ConvolvePlanes, PointwiseWorkBetweenThemStaysOnPlanes) {
  for (const Case& c :
       {Case{.x = {1, 16, 30}, .window = {3}, .filters = 16, .pads = {1, 1}},
        {.x = {1, 16, 4, 5, 6}, .window = {1, 3, 3}, .filters = 16, .pads = {0, 1, 1, 0, 1, 1}},
        {.x = {2, 16, 4, 5, 6}, .window = {3, 3, 3}, .filters = 16, .pads = {1, 1, 1, 1, 1, 1}}}) {
    Graph graph;
    const ValueId x = volume_conv(graph, graph.add_input("x", f32(c.x)), c);
    const ValueId inner = volume_conv(graph, x, c, 7);
    Dims channels(c.x.size(), 1);
    channels[1] = 16;
    const ValueId scaled = graph.add(Op::mul, {weight(graph, channels), graph.add(Op::add, {inner, x})});
    const ValueId halved = graph.add(Op::mul, {graph.add(Op::relu, {scaled}), scalar(graph, 0.5)});
    graph.outputs = {volume_conv(graph, halved, c, 9)};
    const Graph planes = convolve_planes(graph, false);
    for (const Node& node : planes.nodes())
      if (node.op == Op::add || node.op == Op::mul || node.op == Op::relu)
        EXPECT_EQ(planes.type(node.outputs[0]).rank(), 4);
    expect_lowers_faithfully(graph);
  }
}

TEST(ConvolvePlanes, WorkWithOtherOperandsKeepsItsRank) {
  Graph graph;
  const Case c{.x = {2, 4, 19}, .window = {3}, .filters = 4, .pads = {1, 1}};
  const ValueId x = volume_conv(graph, graph.add_input("x", f32(c.x)), c);
  graph.outputs = {graph.add(Op::add, {x, weight(graph, {19})})};
  EXPECT_TRUE(is_over_planes(convolve_planes(graph, false)));
  expect_lowers_faithfully(graph);
}

TEST(ConvolvePlanes, WhatIsBroadcastToAnotherRankIsNoWork) {
  Graph graph;
  const ValueId line =
      volume_conv(graph, graph.add_input("x", f32({1, 4, 1})), {.window = {1}, .filters = 1});
  graph.outputs = {graph.add(Op::mul, {graph.add_input("y", f32({2, 3, 2, 5})), line})};
  EXPECT_TRUE(is_over_planes(convolve_planes(graph, true)));
  expect_lowers_faithfully(graph);
  const std::vector<Tensor> inputs = random_inputs(graph);
  expect_close(interpret(convolve_planes(graph, true), inputs).at(0), interpret(graph, inputs).at(0));
}

TEST(ConvolvePlanes, OthersAreLeftAlone) {
  Graph image;
  image.outputs = {conv(image, image.add_input("x", f32({1, 3, 8, 8})), 4, 3)};
  EXPECT_TRUE(same_structure(convolve_planes(image, false), image));
  Graph grouped;
  grouped.outputs = {volume_conv(grouped, grouped.add_input("x", f32({1, 4, 5, 5, 5})),
                                 {.window = {3, 3, 3}, .filters = 4, .groups = 2})};
  EXPECT_TRUE(same_structure(convolve_planes(grouped, true), grouped));
}

TEST(ConvolvePlanes, ChannelsAreCutAndJoinedAsPlanes) {
  for (const Case& c : {Case{.x = {2, 16, 19}, .window = {3}, .filters = 16, .pads = {1, 1}},
                        Case{.x = {2, 16, 4, 6, 5}, .window = {1, 1, 1}, .filters = 16}}) {
    Graph graph;
    const ValueId x = volume_conv(graph, graph.add_input("x", f32(c.x)), c);
    Dims starts(c.x.size(), 0), sizes = c.x, steps(c.x.size(), 1);
    sizes[1] = 8;
    const auto half = [&](std::int64_t first) {
      starts[1] = first;
      return graph.add(Op::slice, {x}, {{"starts", starts}, {"sizes", sizes}, {"steps", steps}});
    };
    const ValueId first = half(0), second = graph.add(Op::relu, {half(8)});
    const ValueId both = graph.add(Op::concat, {second, first}, {{"axis", std::int64_t{1}}});
    graph.outputs = {volume_conv(graph, both, c, 7)};
    const Graph planes = convolve_planes(graph, false);
    for (const Node& node : planes.nodes())
      if (node.op == Op::slice || node.op == Op::concat) EXPECT_EQ(planes.type(node.outputs[0]).rank(), 4);
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(planes, inputs).at(0), interpret(graph, inputs).at(0));
  }
}

/// What interpolation between samples is: two places of each, and a weight by place.
TEST(ConvolvePlanes, PlacesOfLinesArePickedAsPlanes) {
  const Case c = {.x = {2, 16, 12}, .window = {3}, .filters = 16, .pads = {1, 1}};
  Graph graph;
  const ValueId x = volume_conv(graph, graph.add_input("x", f32(c.x)), c);
  const ValueId half = add_slice(graph, x, {0, 0, 1}, {2, 16, 6}, {1, 1, 2});
  const auto picked = [&](const Dims& places) {
    Tensor index(DType::i64, {8});
    for (std::int64_t i = 0; i < 8; ++i)
      index.set_double(i, static_cast<double>(places[static_cast<std::size_t>(i)]));
    return graph.add(Op::gather, {half, graph.add_constant(index)}, {{"axis", std::int64_t{2}}});
  };
  const ValueId low = picked({0, 0, 0, 1, 1, 2, 3, 5}), high = picked({1, 1, 1, 2, 2, 3, 4, 5});
  const ValueId part = graph.add(Op::mul, {graph.add(Op::sub, {high, low}), weight(graph, {8})});
  graph.outputs = {volume_conv(graph, graph.add(Op::add, {low, part}), c, 9)};
  const Graph planes = convolve_planes(graph, false);
  for (const Node& node : planes.nodes())
    if (node.op == Op::gather || node.op == Op::slice || node.op == Op::sub || node.op == Op::mul)
      EXPECT_EQ(planes.type(node.outputs[0]).rank(), 4);
  expect_lowers_faithfully(graph);
}

TEST(ConvolvePlanes, NoChannelsAreLeftAsTheyAre) {
  const Case c{.x = {2, 16, 19}, .window = {3}, .filters = 16, .pads = {1, 1}};
  Graph graph;
  const ValueId x = volume_conv(graph, graph.add_input("x", f32(c.x)), c);
  graph.outputs = {graph.add(
      Op::slice, {x}, {{"starts", Dims{0, 0, 0}}, {"sizes", Dims{2, 0, 19}}, {"steps", Dims{1, 1, 1}}})};
  const Graph planes = convolve_planes(graph, false);
  EXPECT_EQ(planes.type(planes.outputs[0]).dims(), (Dims{2, 0, 19}));
}

}  // namespace
}  // namespace sylvite::convolve_planes_test
