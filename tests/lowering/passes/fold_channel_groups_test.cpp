#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/store_narrow.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::fold_channel_groups_test {
namespace {

constexpr std::int64_t channels = 16, pixels = 30;

/// What exporters write for x / sqrt(variance of each group of channels + epsilon), the variance over `split`'s dims from 2 on.
Graph divided_by_deviations(const Dims& split) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), channels, 3);
  Dims axes;
  for (std::size_t d = 2; d < split.size(); ++d) axes.push_back(static_cast<std::int64_t>(d));
  Dims ones = split;
  std::fill(ones.begin() + 2, ones.end(), 1);
  const ValueId one_over = scalar(graph, static_cast<float>(split[1]) / (channels * pixels));
  const ValueId cut = reshape(graph, x, split);
  const ValueId sum = graph.add(Op::reduce_sum, {cut}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
  const ValueId off = graph.add(Op::sub, {cut, graph.add(Op::mul, {sum, one_over})});
  const ValueId squares = graph.add(Op::mul, {off, off});
  const ValueId folded =
      graph.add(Op::reduce_sum, {squares}, {{"axes", axes}, {"keepdims", std::int64_t{0}}});
  const ValueId variance = reshape(graph, graph.add(Op::mul, {folded, one_over}), ones);
  const ValueId deviation = graph.add(Op::sqrt, {graph.add(Op::add, {variance, scalar(graph, 1e-5F)})});
  const ValueId spread = graph.add(Op::broadcast_to, {deviation}, {{"shape", split}});
  const ValueId work = graph.add(Op::silu, {x});
  const ValueId y = graph.add(Op::div, {work, reshape(graph, spread, {2, channels, 5, 6})});
  graph.outputs = {conv(graph, y, 8, 1)};
  return graph;
}

const std::vector<Dims> splits = {{2, 16, 1, 5, 6}, {2, 4, 4, 5, 6}, {2, 1, 16, 5, 6}, {2, 4, 120}};

TEST(FoldChannelGroups, GivesTheSame) {
  for (const Dims& split : splits) {
    const Graph graph = divided_by_deviations(split), changed = fold_channel_groups(graph, true);
    EXPECT_FALSE(same_structure(changed, graph));
    for (const Node& node : changed.nodes())
      if (node.op == Op::reshape)
        EXPECT_LT(changed.type(node.outputs[0]).element_count(), 2 * channels * pixels);
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(changed, inputs).at(0), interpret(graph, inputs).at(0));
  }
}

TEST(FoldChannelGroups, NothingLargeChangesItsLayout) {
  for (const Dims& split : splits) {
    const Graph graph = store_narrow(divided_by_deviations(split), DType::bf16, {.keep_wide = false});
    const Plan plan = lower(graph, channels_last());
    for (const Kernel& kernel : plan.kernels) {
      for (const Node& node : kernel.body.nodes()) {
        const bool is_large = kernel.body.type(node.outputs[0]).element_count() == 2 * channels * pixels;
        EXPECT_FALSE(is_large && (node.op == Op::to_layout || node.op == Op::transpose)) << plan_text(plan);
      }
    }
    expect_faithful(graph, plan);
  }
}

TEST(FoldChannelGroups, TheLargestOfAGroupIsFound) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), channels, 3);
  const ValueId cut = reshape(graph, x, {2, 4, 4, 5, 6});
  const ValueId most =
      graph.add(Op::reduce_max, {cut}, {{"axes", Dims{2, 3, 4}}, {"keepdims", std::int64_t{0}}});
  graph.outputs = {graph.add(Op::relu, {most})};
  const Graph changed = fold_channel_groups(graph, true);
  EXPECT_FALSE(same_structure(changed, graph));
  const std::vector<Tensor> inputs = random_inputs(graph);
  expect_close(interpret(changed, inputs).at(0), interpret(graph, inputs).at(0));
}

TEST(FoldChannelGroups, OtherFoldsAndWorkByChannelStay) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), channels, 3);
  const ValueId cut = reshape(graph, x, {2, 4, 4, 5, 6});
  const Attributes pixels_alone = {{"axes", Dims{3, 4}}, {"keepdims", std::int64_t{1}}};
  const ValueId scaled = graph.add(Op::mul, {cut, weight(graph, {4, 4, 1, 1})});
  const ValueId all =
      graph.add(Op::reduce_sum, {scaled}, {{"axes", Dims{2, 3, 4}}, {"keepdims", std::int64_t{1}}});
  graph.outputs = {graph.add(Op::reduce_sum, {cut}, pixels_alone), all};
  EXPECT_TRUE(same_structure(fold_channel_groups(graph, true), graph));
}

TEST(FoldChannelGroups, WhatIsAnOutputIsBroadcast) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), channels, 3);
  const ValueId groups = graph.add_input("g", f32({2, 4, 1, 1, 1}));
  const ValueId spread = graph.add(Op::broadcast_to, {groups}, {{"shape", Dims{2, 4, 4, 5, 6}}});
  const ValueId whole = reshape(graph, spread, {2, channels, 5, 6});
  graph.outputs = {graph.add(Op::mul, {x, whole}), whole};
  const Graph changed = fold_channel_groups(graph, true);
  EXPECT_EQ(changed.type(changed.outputs[1]), graph.type(graph.outputs[1]));
  const std::vector<Tensor> inputs = random_inputs(graph);
  for (const std::size_t i : {0U, 1U})
    expect_close(interpret(changed, inputs).at(i), interpret(graph, inputs).at(i));
}

}  // namespace
}  // namespace sylvite::fold_channel_groups_test
