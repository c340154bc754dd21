#include "lowering/passes/expand_products.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::expand_products_test {
namespace {

Graph product_of(const Dims& left, const Dims& right) {
  Graph graph;
  graph.outputs = {
      graph.add(Op::matmul, {graph.add_input("a", f32(left)), graph.add_input("b", f32(right))})};
  return graph;
}

std::int64_t count(const Graph& graph, Op op) {
  return std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op == op; });
}

TEST(ExpandProducts, OfTinyMatricesAreSums) {
  const std::pair<Dims, Dims> cases[] = {{{70, 8, 3}, {70, 3, 1}},
                                         {{2, 40, 9, 9}, {2, 40, 9, 4}},
                                         {{66, 1, 2}, {66, 2, 20}},
                                         {{64, 4, 5}, {64, 5, 300}},  // of few terms
                                         {{64, 4, 1}, {1, 1, 5}}};
  for (const auto& [left, right] : cases) {
    const Graph graph = product_of(left, right), sums = expand_products(graph);
    EXPECT_EQ(count(sums, Op::matmul), 0);
    EXPECT_EQ(count(sums, Op::mul), left.back());
    const std::vector<Tensor> inputs = random_inputs(graph);
    const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(sums, inputs).at(0);
    ASSERT_EQ(wanted.dims(), got.dims());
    for (std::int64_t k = 0; k < wanted.size(); ++k) ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-5);
  }
}

TEST(ExpandProducts, OthersStay) {
  const std::pair<Dims, Dims> cases[] = {{{70, 8, 17}, {70, 17, 1}},  // deep
                                         {{70, 9, 9}, {70, 9, 5}},    // wide
                                         {{70, 4, 9}, {70, 9, 300}},  // large
                                         {{63, 8, 9}, {63, 9, 2}},    // few
                                         {{100, 9}, {9, 2}}};
  for (const auto& [left, right] : cases) {
    const Graph graph = product_of(left, right);
    EXPECT_TRUE(same_structure(expand_products(graph), graph));
  }
}

}  // namespace
}  // namespace sylvite::expand_products_test
