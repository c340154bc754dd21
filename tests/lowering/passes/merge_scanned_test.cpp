#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::merge_scanned_test {
namespace {

Graph scan(const Dims& dims, std::int64_t axis) {
  Graph graph;
  graph.outputs = {graph.add(Op::cumsum, {graph.add_input("x", f32(dims))},
                             {{"axis", axis}, {"exclusive", std::int64_t{0}}, {"reverse", std::int64_t{0}}})};
  return graph;
}

Graph first_ones(const Dims& dims, std::int64_t axis, std::int64_t k, std::int64_t ties = 0) {
  Graph graph;
  graph.outputs =
      graph.add_node(Op::top_k, {graph.add_input("x", f32(dims))},
                     {{"axis", axis}, {"k", Dims{k}}, {"largest", std::int64_t{1}}, {"ties", ties}});
  return graph;
}

/// What is scanned after the pass, which changes no result.
Dims merged(const Graph& graph) {
  const Graph now = merge_scanned(graph);
  const std::vector<Tensor> inputs = random_inputs(graph);
  const std::vector<Tensor> wanted = interpret(graph, inputs), got = interpret(now, inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(got.at(i).dims(), wanted[i].dims());
    for (std::int64_t j = 0; j < wanted[i].size(); ++j)
      EXPECT_EQ(got.at(i).as_double(j), wanted[i].as_double(j));
  }
  const auto scanned = std::ranges::find_if(now.nodes(), [](const Node& node) {
    return node.op == Op::cumsum || node.op == Op::top_k || node.op == Op::softmax;
  });
  return now.type(scanned->inputs[0]).dims();
}

TEST(MergeScanned, DimsOnEitherSideAreOne) {
  EXPECT_EQ(merged(scan({2, 3, 4, 5, 6}, 2)), (Dims{6, 4, 30}));
  EXPECT_EQ(merged(scan({2, 3, 4}, 2)), (Dims{6, 4}));
  EXPECT_EQ(merged(first_ones({4, 3, 5}, 0, 2)), (Dims{4, 15}));
}

TEST(MergeScanned, ShortColumnsBecomeRows) {
  EXPECT_EQ(merged(scan({3, 9, 2}, 1)), (Dims{6, 9}));
  EXPECT_EQ(merged(first_ones({3, 9, 2}, 1, 4)), (Dims{6, 9}));
}

TEST(MergeScanned, FirstOfManyShortRowsAreFoundAcrossThem) {
  EXPECT_EQ(merged(first_ones({4, 50, 12}, 2, 2)), (Dims{12, 200}));
  EXPECT_EQ(merged(first_ones({4, 50, 12}, 2, 9)), (Dims{200, 12}));  // many of them
  EXPECT_EQ(merged(first_ones({4, 5, 12}, 2, 2)), (Dims{20, 12}));    // few rows
}

TEST(MergeScanned, SoftmaxOfShortColumnsIsOfRows) {
  const auto softmax = [](const Dims& dims, std::int64_t axis) {
    Graph graph;
    graph.outputs = {graph.add(Op::softmax, {graph.add_input("x", f32(dims))}, {{"axis", axis}})};
    return graph;
  };
  EXPECT_EQ(merged(softmax({3, 9, 1}, 1)), (Dims{3, 9}));
  EXPECT_EQ(merged(softmax({3, 9, 2}, 1)), (Dims{6, 9}));
  EXPECT_EQ(merged(softmax({2, 3, 4, 5}, 1)), (Dims{2, 3, 4, 5}));
  EXPECT_EQ(merged(softmax({2, 3, 9}, 2)), (Dims{2, 3, 9}));
}

TEST(MergeScanned, WhatIsFlatStays) {
  EXPECT_EQ(merged(scan({4, 20}, 0)), (Dims{4, 20}));
  EXPECT_EQ(merged(scan({3, 4, 20}, 1)), (Dims{3, 4, 20}));
}

}  // namespace
}  // namespace sylvite::merge_scanned_test
