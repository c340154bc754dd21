#include "lowering/passes/multiply_sums.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::multiply_sums_test {
namespace {

Graph sum_of(const Dims& a, const Dims& b, std::int64_t axis, bool keeps) {
  Graph graph;
  const ValueId product = graph.add(Op::mul, {graph.add_input("a", f32(a)), graph.add_input("b", f32(b))});
  graph.outputs = {graph.add(Op::reduce_sum, {product},
                             {{"axes", Dims{axis}}, {"keepdims", std::int64_t{keeps ? 1 : 0}}})};
  return graph;
}

struct Case {
  Dims a, b;
  std::int64_t axis;
};

TEST(MultiplySums, OfRepeatedValuesAreMatmuls) {
  const Case cases[] = {{{2, 9, 1, 3, 16}, {2, 1, 10, 3, 16}, 4},
                        {{2, 9, 10, 3, 1}, {2, 1, 10, 3, 8}, 2},
                        {{3, 12, 4, 1, 8}, {3, 12, 4, 9, 1}, 1},
                        {{20, 1, 8}, {30, 8}, 2}};
  for (const auto& [a, b, axis] : cases) {
    for (const bool keeps : {false, true}) {
      const Graph graph = sum_of(a, b, axis, keeps), products = multiply_sums(graph);
      EXPECT_EQ(
          std::ranges::count_if(products.nodes(), [](const Node& node) { return node.op == Op::matmul; }), 1);
      const std::vector<Tensor> inputs = random_inputs(graph);
      const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(products, inputs).at(0);
      ASSERT_EQ(wanted.dims(), got.dims());
      for (std::int64_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(wanted.as_double(i), got.as_double(i), 1e-5);
    }
  }
}

TEST(MultiplySums, OthersStay) {
  const Case cases[] = {{{2, 9, 1, 7}, {2, 1, 10, 7}, 3},     // not deep
                        {{2, 9, 1, 16}, {2, 1, 7, 16}, 3},    // few columns
                        {{2, 9, 10, 16}, {2, 9, 10, 16}, 3},  // repeated along nothing
                        {{2, 9, 1, 16}, {2, 1, 10, 1}, 3}};   // one of them has no depth
  for (const auto& [a, b, axis] : cases) {
    const Graph graph = sum_of(a, b, axis, false);
    EXPECT_TRUE(same_structure(multiply_sums(graph), graph));
  }
}

}  // namespace
}  // namespace sylvite::multiply_sums_test
