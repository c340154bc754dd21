// Quotients by constants as products.

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::multiply_inverses_test {
namespace {

Graph quotient(DType dtype, const std::vector<double>& divisors) {
  Graph graph;
  const auto count = static_cast<std::int64_t>(divisors.size());
  Tensor numbers(dtype, {count});
  for (std::int64_t i = 0; i < count; ++i) numbers.set_double(i, divisors[static_cast<std::size_t>(i)]);
  const ValueId x = graph.add_input("x", make_type(dtype, {4, count}));
  graph.outputs = {graph.add(Op::div, {x, graph.add_constant(numbers)})};
  return graph;
}

TEST(MultiplyInverses, QuotientsOfSixteenBitsByConstantsAreProducts) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Graph graph = quotient(dtype, {0.375, -3, 7}), after = multiply_inverses(graph);
    EXPECT_EQ(std::ranges::count(after.nodes(), Op::div, &Node::op), 0);
    EXPECT_EQ(after.type(after.outputs[0]), graph.type(graph.outputs[0]));
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(after, inputs).at(0), interpret(graph, inputs).at(0), 1e-2);
  }
}

TEST(MultiplyInverses, OthersStay) {
  for (const Graph& graph : {quotient(DType::f32, {0.375, -3, 7}), quotient(DType::bf16, {0, 1, 2}),
                             quotient(DType::bf16, {1e-36, 1})})
    EXPECT_TRUE(same_structure(multiply_inverses(graph), graph));
}

}  // namespace
}  // namespace sylvite::multiply_inverses_test
