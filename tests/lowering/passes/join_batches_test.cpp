#include "lowering/passes/join_batches.h"

#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::join_batches_test {
namespace {

Graph product_of(const Dims& left, const Dims& right) {
  Graph graph;
  graph.outputs = {
      graph.add(Op::matmul, {graph.add_input("a", f32(left)), graph.add_input("b", f32(right))})};
  return graph;
}

/// As tensor cores do: every batch has its own operands.
LoweringOptions options() {
  LoweringOptions options;
  options.refuse_template = [](const Kernel& kernel) {
    const Node& node = kernel.body.node(kernel.anchor);
    const Dims a = kernel.body.type(node.inputs[0]).dims(), b = kernel.body.type(node.inputs[1]).dims();
    return std::equal(a.begin(), a.end() - 2, b.begin()) ? "" : "an operand is shared";
  };
  return options;
}

TEST(JoinBatches, SharedBatchesAreRows) {
  for (const auto& [left, right] : {std::pair{Dims{2, 3, 4, 5}, Dims{2, 1, 5, 7}},
                                    {Dims{2, 3, 2, 4, 5}, Dims{2, 1, 1, 5, 7}},
                                    {Dims{2, 3, 2, 4, 5}, Dims{2, 3, 1, 5, 7}}}) {
    const Graph graph = product_of(left, right), joined = join_batches(graph, options());
    EXPECT_FALSE(same_structure(graph, joined));
    const std::vector<Tensor> inputs = random_inputs(graph);
    const Tensor wanted = interpret(graph, inputs)[0], got = interpret(joined, inputs)[0];
    ASSERT_EQ(wanted.dims(), got.dims());
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(wanted.as_double(i), got.as_double(i), 1e-5);
  }
}

TEST(JoinBatches, NotWhereNothingIsShared) {
  for (const auto& [left, right] : {std::pair{Dims{2, 3, 4, 5}, Dims{2, 3, 5, 7}},
                                    {Dims{2, 3, 4, 5}, Dims{1, 3, 5, 7}},
                                    {Dims{2, 1, 4, 5}, Dims{2, 1, 5, 7}},
                                    {Dims{2, 3, 4, 5}, Dims{5, 7}}}) {
    const Graph graph = product_of(left, right);
    EXPECT_TRUE(same_structure(graph, join_batches(graph, options())));
  }
}

TEST(JoinBatches, NotWhereATemplateTakesIt) {
  LoweringOptions all;
  all.refuse_template = [](const Kernel&) { return ""; };
  const Graph graph = product_of({2, 3, 4, 5}, {2, 1, 5, 7});
  EXPECT_TRUE(same_structure(graph, join_batches(graph, all)));
}

}  // namespace
}  // namespace sylvite::join_batches_test
