#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::divide_expectations_test {
namespace {

/// The expected place along `axis`, of shares that a convolution or rows of numbers give.
Graph expectation(bool of_image, std::int64_t axis, const Dims& weights, std::int64_t keepdims = 1) {
  Graph graph;
  ValueId x = graph.add_input("x", f32({2, 8, 5, 12}));
  if (of_image) x = conv(graph, x, 12, 1);
  const ValueId shares = graph.add(Op::softmax, {x}, {{"axis", axis}});
  const ValueId terms = graph.add(Op::mul, {weight(graph, weights), shares});
  graph.outputs = {graph.add(Op::reduce_sum, {terms}, {{"axes", Dims{axis}}, {"keepdims", keepdims}})};
  return graph;
}

void expect_same(const Graph& graph) {
  const Graph divided = divide_expectations(graph, true);
  EXPECT_EQ(std::ranges::count(divided.nodes(), Op::softmax, &Node::op), 0);
  EXPECT_EQ(divided.type(divided.outputs[0]), graph.type(graph.outputs[0]));
  const std::vector<Tensor> inputs = random_inputs(graph);
  const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(divided, inputs).at(0);
  for (std::int64_t k = 0; k < wanted.size(); ++k) ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-5);
}

TEST(DivideExpectations, RowsAndChannelsAreSums) {
  expect_same(expectation(false, 3, {1, 1, 1, 12}));
  expect_same(expectation(false, 3, {2, 8, 5, 12}, 0));
  expect_same(expectation(true, 1, {1, 12, 1, 1}));
  expect_same(expectation(true, 1, {2, 12, 1, 1}, 0));
}

TEST(DivideExpectations, OthersStay) {
  for (const Graph& graph : {expectation(false, 1, {1, 8, 1, 1}), expectation(false, 3, {12})})
    EXPECT_TRUE(same_structure(divide_expectations(graph, true), graph));
  Graph read_twice = expectation(false, 3, {1, 1, 1, 12});
  for (const Node& node : read_twice.nodes())
    if (node.op == Op::softmax) read_twice.outputs.push_back(node.outputs[0]);
  const Graph divided = divide_expectations(read_twice, true);
  EXPECT_EQ(std::ranges::count(divided.nodes(), Op::softmax, &Node::op), 1);
}

}  // namespace
}  // namespace sylvite::divide_expectations_test
