#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::merge_concats_test {
namespace {

Graph side_by_side(const Dims& first, const Dims& second, std::int64_t axis, bool is_view = false) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32(first));
  ValueId y = graph.add_input("y", f32(second));
  if (is_view) y = transpose(graph, y, {0, 2, 1});
  graph.outputs = {graph.add(Op::concat, {x, y}, {{"axis", axis}})};
  return graph;
}

/// What the concat gives after the pass, which changes no result.
Dims joined(const Graph& graph) {
  const Graph now = merge_concats(graph);
  const std::vector<Tensor> inputs = random_inputs(graph);
  const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(now, inputs).at(0);
  EXPECT_EQ(got.dims(), wanted.dims());
  for (std::int64_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(got.as_double(i), wanted.as_double(i));
  const auto concat = std::ranges::find(now.nodes(), Op::concat, &Node::op);
  return now.type(concat->outputs[0]).dims();
}

TEST(MergeConcats, ShortRowsAreLongOnes) {
  EXPECT_EQ(joined(side_by_side({2, 3, 6, 5}, {2, 3, 4, 5}, 2)), (Dims{6, 50}));
  EXPECT_EQ(joined(side_by_side({8, 3, 5}, {2, 3, 5}, 0)), (Dims{1, 150}));
}

TEST(MergeConcats, WhatFillsVectorsStays) {
  EXPECT_EQ(joined(side_by_side({2, 6, 16}, {2, 4, 16}, 1)), (Dims{2, 10, 16}));
  EXPECT_EQ(joined(side_by_side({2, 6}, {2, 4}, 1)), (Dims{2, 10}));
  EXPECT_EQ(joined(side_by_side({2, 3, 5}, {2, 2, 5}, 1)), (Dims{2, 5, 5}));  // parts of 10
}

TEST(MergeConcats, ViewsAndChannelsStay) {
  EXPECT_EQ(joined(side_by_side({2, 6, 5}, {2, 5, 5}, 1, true)), (Dims{2, 11, 5}));
  EXPECT_EQ(joined(side_by_side({2, 6, 3, 3}, {2, 4, 3, 3}, 1)), (Dims{2, 10, 3, 3}));
}

}  // namespace
}  // namespace sylvite::merge_concats_test
