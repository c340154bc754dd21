// Work on results of products that are read through views.

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::work_ahead_of_views_test {
namespace {

LoweringOptions with_templates() {
  LoweringOptions options;
  options.refuse_template = [](const Kernel&) { return ""; };
  return options;
}

/// Two groups of channels of two values, each multiplied by a matrix of its own, and what both differ by.
Graph grouped(bool with_the_same_views, bool is_read_again = false) {
  Graph graph;
  const auto multiplied = [&](const char* name, bool turned) {
    const ValueId x = graph.add_input(name, f32({6, 2, 4}));
    const ValueId rows = transpose(graph, x, {1, 0, 2});
    const ValueId product = graph.add(Op::matmul, {rows, weight(graph, {2, 4, 4})});
    if (is_read_again) graph.outputs.push_back(product);
    const ValueId back = turned ? transpose(graph, product, {1, 0, 2}) : product;
    return reshape(graph, back, {6, 8});
  };
  const ValueId one = multiplied("x", true), other = multiplied("y", with_the_same_views);
  graph.outputs.push_back(graph.add(Op::relu, {graph.add(Op::sub, {one, other})}));
  return graph;
}

void expect_equal(const Graph& before, const Graph& after) {
  const std::vector<Tensor> inputs = random_inputs(before);
  const std::vector<Tensor> expected = interpret(before, inputs), made = interpret(after, inputs);
  for (std::size_t i = 0; i < expected.size(); ++i) expect_close(made[i], expected[i], 1e-6);
}

TEST(WorkAheadOfViews, IsDoneOnProductsOfTheSameViews) {
  const Graph graph = grouped(true);
  const Graph after = work_ahead_of_views(graph, with_templates());
  const auto sub = std::ranges::find(after.nodes(), Op::sub, &Node::op);
  for (const ValueId input : sub->inputs) EXPECT_NE(producer_if(after, input, Op::matmul), nullptr);
  EXPECT_EQ(std::ranges::count(after.nodes(), Op::transpose, &Node::op), 3);
  EXPECT_EQ(after.nodes().back().op, Op::reshape) << "behind the ReLU, too";
  expect_equal(graph, after);
}

TEST(WorkAheadOfViews, StaysBehindOtherViewsAndThoseOfWhatIsReadAgain) {
  for (const Graph& graph : {grouped(false), grouped(true, true)}) {
    const Graph after = work_ahead_of_views(graph, with_templates());
    const auto sub = std::ranges::find(after.nodes(), Op::sub, &Node::op);
    EXPECT_EQ(producer_if(after, sub->inputs[0], Op::matmul), nullptr);
    expect_equal(graph, after);
  }
}

}  // namespace
}  // namespace sylvite::work_ahead_of_views_test
