#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::divide_sums_test {
namespace {

Graph sum_of(const Dims& dims, const Dims& axes, std::int64_t keepdims) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, dims));
  graph.outputs = {
      graph.add(Op::reduce_sum, {add_cast(graph, x, DType::f32)}, {{"axes", axes}, {"keepdims", keepdims}})};
  return graph;
}

std::size_t sums_in(const Graph& graph) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.op == Op::reduce_sum ? 1 : 0;
  return count;
}

void expect_divided(const Dims& dims, const Dims& axes, std::int64_t keepdims) {
  const Graph whole = sum_of(dims, axes, keepdims), divided = divide_sums(whole);
  EXPECT_EQ(sums_in(divided), 2U);
  const TensorType& type = whole.type(whole.inputs[0]);
  Tensor x(type.dtype, type.dims());
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i * 7 % 11) - 5);
  const Tensor wanted = interpret(whole, {x}).at(0), got = interpret(divided, {x}).at(0);
  ASSERT_EQ(wanted.dims(), got.dims());
  for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i));
}

TEST(DivideSums, KeepsTheResult) {
  expect_divided({9, 6, 10, 8}, {0, 2, 3}, 1);
  expect_divided({9, 6, 10, 8}, {0, 2, 3}, 0);
  expect_divided({1 << 14, 3}, {0}, 0);
  expect_divided({1, 8, 16, 2048}, {2, 3}, 1);  // one large image
  expect_divided({1, 4, 8, 128, 64}, {2, 3, 4}, 0);
  expect_divided({std::int64_t{15} * 1100, 2}, {0}, 1);
}

TEST(DivideSums, ImagesThatFillAGpuStayOneSum) {
  EXPECT_EQ(sums_in(divide_sums(sum_of({16, 8, 16, 2048}, {2, 3}, 1))), 1U);  // many images
  EXPECT_EQ(sums_in(divide_sums(sum_of({1, 64, 28, 28}, {2, 3}, 1))), 1U);    // few pixels
  EXPECT_EQ(sums_in(divide_sums(sum_of({1, 8, 4, 8192}, {2, 3}, 1))), 1U);    // few lines
}

TEST(DivideSums, WorkThatTheSumAloneReadsIsNotComputedAhead) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1 << 14, 3}));
  const ValueId square = graph.add(Op::mul, {x, x});
  graph.outputs = {graph.add(Op::reduce_sum, {square}, {{"axes", Dims{0}}, {"keepdims", std::int64_t{0}}})};
  EXPECT_EQ(sums_in(divide_sums(graph)), 1U);
  graph.outputs.push_back(graph.add(Op::neg, {square}));
  EXPECT_EQ(sums_in(divide_sums(graph)), 2U);
}

TEST(DivideSums, PixelsThatAreInnermostAreRows) {
  const auto first_axes = [](const Dims& dims) {
    const Graph divided = divide_sums(sum_of(dims, {0, 2, 3}, 0));
    for (const Node& node : divided.nodes())
      if (node.op == Op::reduce_sum) return node.attributes.integers("axes");
    return Dims{};
  };
  EXPECT_EQ(first_axes({16, 2, 32, 32}), Dims{2});
  EXPECT_EQ(first_axes({16, 8, 32, 32}), (Dims{2, 3})) << "channels lie innermost";
}

TEST(DivideSums, FewElementsAreOneSum) {
  for (const Graph& graph : {sum_of({4, 1, 8, 6}, {0, 2, 3}, 0), sum_of({9, 4000, 10, 8}, {0, 2, 3}, 0),
                             sum_of({1 << 14, 600}, {0}, 0), sum_of({16411, 2}, {0}, 0)})
    EXPECT_EQ(sums_in(divide_sums(graph)), 1U);
}

}  // namespace
}  // namespace sylvite::divide_sums_test
