#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite::divide_products_test {
namespace {

/// The gradient of a weight: of so many rows of both operands.
Graph product(std::int64_t rows, std::int64_t outputs, std::int64_t inputs, DType dtype = DType::bf16) {
  Graph graph;
  const ValueId g = graph.add_input("g", make_type(dtype, {rows, outputs}));
  const ValueId x = graph.add_input("x", make_type(dtype, {rows, inputs}));
  graph.outputs = {graph.add(Op::matmul, {add_transpose(graph, g, {1, 0}), x})};
  return graph;
}

std::int64_t parts_in(const Graph& graph) {
  std::int64_t most = 1;
  for (const Node& node : graph.nodes())
    if (node.op == Op::matmul && graph.type(node.outputs[0]).dims().size() == 3)
      most = std::max(most, graph.type(node.outputs[0]).dims()[0]);
  return most;
}

TEST(DivideProducts, KeepsTheResult) {
  for (const std::int64_t rows : {8192, 8191}) {  // as parts of a size, and with a rest
    const Graph whole = product(rows, 6, 5), divided = divide_products(whole);
    EXPECT_EQ(parts_in(divided), rows == 8192 ? 8 : 7);
    EXPECT_EQ(divided.type(divided.outputs[0]), whole.type(whole.outputs[0]));
    std::vector<Tensor> inputs;
    for (const ValueId id : whole.inputs) {
      Tensor& input = inputs.emplace_back(whole.type(id).dtype, whole.type(id).dims());
      for (std::int64_t i = 0; i < input.size(); ++i)
        input.set_double(i, i % 64 == 0 ? static_cast<double>(i / 64 % 7) - 3 : 0);
    }
    const Tensor wanted = interpret(whole, inputs).at(0), got = interpret(divided, inputs).at(0);
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i));
  }
}

TEST(DivideProducts, LeavesManyResultsAndFewRows) {
  for (const Graph& graph : {product(8192, 768, 768), product(2048, 96, 96), product(8192, 6, 5, DType::f64)})
    EXPECT_TRUE(same_structure(divide_products(graph), graph));
}

TEST(DivideProducts, LeavesProductsWhoseDepthLiesInnermost) {
  Graph graph;
  const ValueId a = graph.add_input("a", make_type(DType::bf16, {64, 8192}));
  const ValueId b = graph.add_input("b", make_type(DType::bf16, {8192, 64}));
  graph.outputs = {graph.add(Op::matmul, {a, b})};
  EXPECT_TRUE(same_structure(divide_products(graph), graph));
}

}  // namespace
}  // namespace sylvite::divide_products_test
