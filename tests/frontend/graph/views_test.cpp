#include "frontend/graph/views.h"

#include <gtest/gtest.h>

#include "frontend/graph/copy.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "sylvite/graph_text.h"

namespace sylvite::views_test {
namespace {

/// Of the right operand of the graph's last matmul: the name, with a mark for the transpose; "" for none.
std::string own_weight(const std::string& body) {
  const Graph graph = parse_graph("graph g(%x: f32[2,4], %w: f32[4,4]) {\n" + body + "}");
  const OwnOperand own = own_operand(graph, graph.uses(), graph.nodes().back().inputs.at(1));
  return own.id == no_value ? "" : graph.value(own.id).name + (own.is_transposed ? "'" : "");
}

TEST(OwnOperand, IsReadOnceAndNotComputed) {
  const std::string turned = "  %t: f32[4,4] = transpose(%w) {perm=[1,0]}\n";
  const std::string product = "  %m: f32[2,4] = matmul(%x, %t)\n  return %m\n";
  EXPECT_EQ(own_weight("  %m: f32[2,4] = matmul(%x, %w)\n  return %m\n"), "w");
  EXPECT_EQ(own_weight(turned + product), "w'");
  EXPECT_EQ(own_weight(turned + "  %n: f32[4,4] = neg(%t)\n" + product), "");
  EXPECT_EQ(own_weight(turned + "  %n: f32[4,4] = neg(%w)\n" + product), "");
  EXPECT_EQ(own_weight("  %t: f32[4,4] = neg(%w)\n" + product), "");
}

TEST(AddReshape, AroundASliceToOneElementIsNone) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {4, 3}));
  const ValueId unit = add_reshape(graph, x, {4, 1, 3});
  const ValueId sliced = add_slice(graph, unit, {0, 0, 2}, {4, 1, 1}, {1, 1, 1});
  const ValueId y = add_reshape(graph, sliced, {4, 1});
  const Node* const slice = producer_if(graph, y, Op::slice);
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->inputs[0], x);
  EXPECT_EQ(slice->attributes.integers("starts"), (Dims{0, 2}));
}

TEST(AddReshape, OfASliceWithAnotherDimAheadIsASlice) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {4, 7}));
  const ValueId y = add_reshape(graph, add_slice(graph, x, {0, 2}, {4, 3}, {1, 1}), {4, 1, 3});
  const Node* const slice = producer_if(graph, y, Op::slice);
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->attributes.integers("starts"), (Dims{0, 0, 2}));
}

TEST(AddReshape, OfASliceOfATransposeReadsTheSliceAlone) {
  Graph graph = parse_graph(
      "graph g(%x: f32[6,4,3,5]) {\n"
      "  %t: f32[3,6,4,5] = transpose(%x) {perm=[2,0,1,3]}\n"
      "  %s: f32[1,6,4,5] = slice(%t) {starts=[2,0,0,0], sizes=[1,6,4,5], steps=[1,1,1,1]}\n"
      "  return %s\n}");
  Tensor x(DType::f32, {6, 4, 3, 5});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i));
  const Tensor slice = interpret(graph, {x}).at(0);
  graph.outputs = {add_reshape(graph, graph.outputs[0], {2, 3, 4, 5})};
  const Graph used = without_dead_nodes(graph);
  for (const Node& node : used.nodes()) EXPECT_NE(node.op, Op::transpose);
  EXPECT_EQ(interpret(used, {x}).at(0).to_int64s(), slice.to_int64s());
}

}  // namespace
}  // namespace sylvite::views_test
