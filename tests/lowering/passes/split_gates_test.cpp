#include "lowering/passes/split_gates.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::split_gates_test {
namespace {

constexpr std::int64_t rows = 1024, width = 2048;  // of a half: as small as those that are split

std::int64_t count(const Graph& graph, Op op) {
  return std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op == op; });
}

/// What is done with both halves of `id` along `axis`.
ValueId gate(Graph& graph, ValueId id, std::size_t axis) {
  const std::int64_t half = graph.type(id).dims()[axis] / 2;
  const ValueId first = add_slice_along(graph, id, axis, 0, half);
  const ValueId second = add_slice_along(graph, id, axis, half, half);
  return graph.add(Op::mul, {graph.add(Op::sigmoid, {second}), first});
}

Graph gated_rows(std::int64_t count, bool has_bias, bool has_images) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({count, 2}));
  ValueId product = graph.add(Op::matmul, {x, graph.add_constant(random_tensor({2, 2 * width}, 1))});
  if (has_bias) product = graph.add(Op::add, {product, graph.add_constant(random_tensor({1, 2 * width}, 2))});
  if (has_images) product = add_reshape(graph, product, {2, count / 2, 2 * width});
  graph.outputs = {gate(graph, product, has_images ? 2 : 1)};
  return graph;
}

void expect_split(const Graph& graph, Op op) {
  const Graph split = split_gates(graph);
  EXPECT_EQ(count(split, op), 2);
  EXPECT_EQ(count(split, Op::slice), 0);
  const std::vector<Tensor> inputs = random_inputs(graph);
  expect_close(interpret(split, inputs)[0], interpret(graph, inputs)[0], 1e-5);
}

TEST(SplitGates, EachHalfIsAProduct) {
  expect_split(gated_rows(rows, true, true), Op::matmul);
}

TEST(SplitGates, ConvolutionsByHalvesOfTheirFilters) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({4, 2, 1026})),
                filter = graph.add_constant(random_tensor({1024, 2, 3}, 1)),
                bias = graph.add_constant(random_tensor({1024}, 2));
  const ValueId conv = graph.add(
      Op::conv, {x, filter, bias},
      {{"strides", Dims{1}}, {"pads", Dims{0, 0}}, {"dilations", Dims{1}}, {"groups", std::int64_t{1}}});
  graph.outputs = {gate(graph, conv, 1)};
  expect_split(graph, Op::conv);
}

TEST(SplitGates, SmallOnesStay) {
  const Graph graph = gated_rows(rows - 2, true, true);
  EXPECT_TRUE(same_structure(split_gates(graph), graph));
}

TEST(SplitGates, HalvesThatDoNotMeetStay) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({rows, 2}));
  const ValueId product = graph.add(Op::matmul, {x, graph.add_constant(random_tensor({2, 2 * width}, 1))});
  for (const std::int64_t start : {std::int64_t{0}, width})
    graph.outputs.push_back(graph.add(Op::sigmoid, {add_slice_along(graph, product, 1, start, width)}));
  EXPECT_TRUE(same_structure(split_gates(graph), graph));
}

TEST(SplitGates, AProductThatIsReadWholeStays) {
  Graph graph = gated_rows(rows, true, false);
  for (const Node& node : graph.nodes())
    if (node.op == Op::add) graph.outputs.push_back(node.outputs[0]);
  EXPECT_TRUE(same_structure(split_gates(graph), graph));
}

}  // namespace
}  // namespace sylvite::split_gates_test
