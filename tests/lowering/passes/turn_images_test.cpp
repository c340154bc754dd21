#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "frontend/graph/rewrite.h"
#include "frontend/ops/op_table.h"
#include "frontend/passes/store_narrow.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::turn_images_test {
namespace {

/// Tokens that become an image, a depthwise convolution over it, and tokens again, as in mixed feed-forward layers.
Graph mixed_feed_forward(std::int64_t batch) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({batch, 20, 8}));
  const ValueId image =
      graph.add(Op::reshape, {transpose(graph, x, {0, 2, 1})}, {{"shape", Dims{batch, 8, 4, 5}}});
  const ValueId flat = graph.add(Op::reshape, {conv(graph, image, 8, 3, 8)}, {{"shape", Dims{batch, 8, 20}}});
  const ValueId rows = graph.add(Op::gelu, {transpose(graph, flat, {0, 2, 1})}, {{"approximate", "none"}});
  graph.outputs = {graph.add(Op::matmul, {rows, weight(graph, {8, 16})})};
  return store_narrow(graph, DType::bf16);
}

TEST(TurnImages, TokensOfAnImageMoveNothing) {
  for (const std::int64_t batch : {1, 3}) {
    const Graph graph = mixed_feed_forward(batch);
    const Plan plan = lower(graph, channels_last());
    // The convolution with its GELU, and the product; the input and the output change their type on the way.
    EXPECT_LE(plan.launches.size(), 4U) << plan_text(plan);
    EXPECT_TRUE(std::ranges::none_of(plan.kernels, [](const Kernel& kernel) {
      return std::ranges::any_of(kernel.body.nodes(), [](const Node& node) {
        return node.op == Op::transpose || node.op == Op::to_layout;
      });
    })) << plan_text(plan);
    expect_faithful(graph, plan);
  }
}

/// Features of points, which are convolved as pixels of one line, and the greatest over points.
TEST(TurnImages, FoldsOverPixelsReadThemWhereTheyLie) {
  for (const bool keeps : {false, true}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({2, 16, 1, 30}));
    const ValueId points = graph.add(Op::reshape, {conv(graph, x, 24, 1)}, {{"shape", Dims{2, 24, 30}}});
    const ValueId most =
        graph.add(Op::reduce_max, {points}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{keeps}}});
    graph.outputs = {graph.add(Op::relu, {most})};
    graph = store_narrow(graph, DType::bf16);
    const Plan plan = lower(graph, channels_last());
    EXPECT_LE(plan.launches.size(), 3U) << plan_text(plan);
    expect_faithful(graph, plan);
  }
}

/// How many features of a series are above a number: they are compared where they lie.
TEST(TurnImages, FoldsDoTheWorkOnWhatTheyRead) {
  for (const bool keeps : {false, true}) {
    Graph graph;
    const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 30, 24}));
    const ValueId above =
        graph.add(Op::greater, {transpose(graph, x, {0, 2, 1}), graph.add_constant(Tensor(DType::bf16, {}))});
    const ValueId ones = graph.add(Op::cast, {above}, {{"to", "bf16"}});
    graph.outputs = {
        graph.add(Op::reduce_sum, {ones}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{keeps}}})};
    const Graph after = turn_images(graph, false);
    for (const Node& node : after.nodes())
      if (node.op == Op::reduce_sum) EXPECT_EQ(node.attributes.integers("axes"), Dims{1});
    EXPECT_EQ(lower(graph, channels_last()).launches.size(), 1U);
    expect_faithful(graph, lower(graph, channels_last()), 1e-3);
  }
}

/// Sums of each pixel's channels are of rows, as they were written: images are not transposed for them.
TEST(TurnImages, FoldsOfRowsOfChannelsStay) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 16, 4, 6}));
  const ValueId rows = transpose(graph, conv(graph, x, 32, 3), {0, 2, 3, 1});
  const ValueId sums = graph.add(Op::reduce_sum, {rows}, {{"axes", Dims{3}}, {"keepdims", std::int64_t{1}}});
  graph.outputs = {graph.add(Op::matmul, {graph.add(Op::sub, {rows, sums}), weight(graph, {32, 8})})};
  graph = store_narrow(graph, DType::bf16);
  const Plan plan = lower(graph, channels_last());
  for (const Kernel& kernel : plan.kernels)
    for (const Node& node : kernel.body.nodes())
      if (node.op == Op::reduce_sum) EXPECT_EQ(node.attributes.integers("axes"), Dims{3}) << plan_text(plan);
  expect_faithful(graph, plan);
}

/// Of groups of channels, which lie side by side: nothing is transposed.
TEST(TurnImages, FoldsOfGroupsOfChannelsAreOfRows) {
  Graph graph;
  const ValueId image = conv(graph, graph.add_input("x", f32({2, 16, 4, 6})), 32, 3);
  const ValueId groups = reshape(graph, graph.add(Op::mul, {image, image}), {2, 4, 8, 4, 6});
  graph.outputs = {graph.add(Op::reduce_sum, {groups}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{0}}})};
  graph = store_narrow(graph, DType::bf16);
  const Graph after = turn_images(graph, false);
  for (const Node& node : after.nodes())
    if (node.op == Op::reduce_sum) EXPECT_EQ(node.attributes.integers("axes"), Dims{4});
  expect_faithful(graph, lower(graph, channels_last()));
}

/// Frames of a film, each of which meets what was made of the one before: they are read where they lie.
TEST(TurnImages, FramesAreImages) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({6, 8, 4, 5}));  // two films of three
  const ValueId frames = graph.add(Op::reshape, {conv(graph, x, 8, 3)}, {{"shape", Dims{2, 24, 4, 5}}});
  const auto frame = [&](std::int64_t number) {
    return graph.add(
        Op::slice, {frames},
        {{"starts", Dims{0, 8 * number, 0, 0}}, {"sizes", Dims{2, 8, 4, 5}}, {"steps", Dims(4, 1)}});
  };
  ValueId state = frame(1);
  for (const std::int64_t number : {0, 2}) {
    const ValueId both = graph.add(Op::concat, {frame(number), state}, {{"axis", std::int64_t{1}}});
    state = graph.add(Op::tanh, {conv(graph, both, 8, 3)});
  }
  graph.outputs = {state};
  graph = store_narrow(graph, DType::bf16);
  const Plan plan = lower(graph, channels_last());
  const auto moves = [&](const Launch& launch) {
    return plan.kernels[static_cast<std::size_t>(launch.kernel)].kind == KernelClass::movement;
  };
  EXPECT_LE(std::ranges::count_if(plan.launches, moves), 3) << "two concats, and the output\n"
                                                            << plan_text(plan);
  expect_faithful(graph, plan);
}

/// Attention over the pixels of an image: query, key and value are channels of a convolution, as are the results.
TEST(TurnImages, HeadsOfChannelsAreReadInPlace) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 16, 4, 6}));
  const ValueId heads = graph.add(Op::reshape, {conv(graph, x, 48, 1)}, {{"shape", Dims{2, 2, 24, 24}}});
  const auto part = [&](std::int64_t first) {
    const ValueId cut =
        graph.add(Op::slice, {heads},
                  {{"starts", Dims{0, 0, first, 0}}, {"sizes", Dims{2, 2, 8, 24}}, {"steps", Dims(4, 1)}});
    return transpose(graph, cut, {0, 1, 3, 2});
  };
  const ValueId attended = graph.add(Op::attention, {part(0), part(8), part(16)});
  const ValueId image =
      graph.add(Op::reshape, {transpose(graph, attended, {0, 1, 3, 2})}, {{"shape", Dims{2, 16, 4, 6}}});
  graph.outputs = {conv(graph, image, 16, 1)};
  graph = store_narrow(graph, DType::bf16);
  const Plan plan = lower(graph, channels_last());
  const auto moves = [&](const Launch& launch) {
    return plan.kernels[static_cast<std::size_t>(launch.kernel)].kind == KernelClass::movement;
  };
  EXPECT_LE(std::ranges::count_if(plan.launches, moves), 2)
      << plan_text(plan);  // of the input and the output
  expect_faithful(graph, plan);
}

/// Products of the channels of two images, of which one is cut, and the length of each pixel's channels.
TEST(TurnImages, FoldsOfChannelsFoldRows) {
  for (const std::int64_t keepdims : {0, 1}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({2, 16, 4, 6}));
    const ValueId left = conv(graph, x, 16, 1), right = conv(graph, x, 16, 3);
    const ValueId cut =
        graph.add(Op::slice, {right},
                  {{"starts", Dims{0, 0, 0, 1}}, {"sizes", Dims{2, 16, 4, 5}}, {"steps", Dims(4, 1)}});
    const ValueId beside = graph.add(
        Op::slice, {left}, {{"starts", Dims(4, 0)}, {"sizes", Dims{2, 16, 4, 5}}, {"steps", Dims(4, 1)}});
    const Attributes channels = {{"axes", Dims{1}}, {"keepdims", keepdims}};
    graph.outputs = {graph.add(Op::reduce_sum, {graph.add(Op::mul, {beside, cut})}, channels),
                     graph.add(Op::reduce_max, {left}, channels)};
    graph = store_narrow(graph, DType::bf16);
    const Plan plan = lower(graph, channels_last());
    int folds = 0;
    for (const Kernel& kernel : plan.kernels) {
      EXPECT_TRUE(kernel.kind != KernelClass::pointwise) << plan_text(plan);
      if (kernel.kind != KernelClass::reduction) continue;
      ++folds;
      const Node& fold = kernel.body.node(kernel.anchor);
      EXPECT_EQ(fold.attributes.integers("axes"), Dims{kernel.body.type(fold.inputs[0]).rank() - 1});
    }
    EXPECT_EQ(folds, 2) << plan_text(plan);
    expect_faithful(graph, plan);
  }
}

/// The greatest and the mean of each pixel's channels, side by side, as gates over pixels are made of.
TEST(TurnImages, FoldsOfOneImageReadTheSameRowsAndWorkWithNumbersFollows) {
  for (const std::int64_t keepdims : {0, 1}) {
    Graph graph;
    const ValueId image = conv(graph, graph.add_input("x", f32({2, 16, 4, 6})), 16, 3);
    const Attributes channels = {{"axes", Dims{1}}, {"keepdims", keepdims}};
    const ValueId most = graph.add(Op::reduce_max, {image}, channels);
    const ValueId sum = graph.add(Op::reduce_sum, {image}, channels);
    const ValueId mean = graph.add(Op::mul, {sum, scalar(graph, 1.F / 16)});
    graph.outputs = {graph.add(Op::concat, {most, graph.add(Op::sqrt, {graph.add(Op::abs, {mean})})},
                               {{"axis", std::int64_t{1}}}),
                     image};
    const Graph after = turn_images(graph, true);
    std::set<ValueId> folded;
    for (const Node& node : after.nodes())
      if (has_trait(node.op, OpTrait::reduction)) folded.insert(node.inputs[0]);
    EXPECT_EQ(folded.size(), 1U);
    const Node* work = producer_if(after, after.node(after.value(after.outputs[0]).producer).inputs[1],
                                   keepdims != 0 ? Op::reshape : Op::sqrt);
    ASSERT_NE(work, nullptr);
    if (keepdims != 0) work = producer_if(after, work->inputs[0], Op::sqrt);
    ASSERT_NE(work, nullptr);
    const Node* const scale =
        producer_if(after, after.node(after.value(work->inputs[0]).producer).inputs[0], Op::mul);
    ASSERT_NE(scale, nullptr);
    EXPECT_TRUE(producer_if(after, scale->inputs[0], Op::reduce_sum) != nullptr);
    expect_faithful(graph, lower(graph, channels_last()));
  }
}

TEST(TurnImages, LinesOfChannelsAreLeftAlone) {
  Graph graph;
  const ValueId image = conv(graph, graph.add_input("x", f32({2, 8, 4, 6})), 8, 1);
  const ValueId lines = graph.add(Op::reshape, {image}, {{"shape", Dims{2, 32, 6}}});
  graph.outputs = {transpose(graph, lines, {0, 2, 1})};
  EXPECT_TRUE(same_structure(turn_images(graph, true), graph));
}

}  // namespace
}  // namespace sylvite::turn_images_test
