#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::widen_attention_test {
namespace {

/// As tensor cores do: rows of whole vectors, and heads of at most 16.
std::string refuse(const Kernel& kernel) {
  const std::int64_t depth = kernel.body.type(kernel.body.node(kernel.anchor).inputs[0]).dims().back();
  if (depth % 8 != 0) return "its rows are odd";
  return kernel.kind == KernelClass::attention && depth > 16 ? "its heads are deep" : "";
}

LoweringOptions options() {
  LoweringOptions options;
  options.refuse_template = refuse;
  return options;
}

Graph attention_of_depth(std::int64_t depth) {
  Graph graph;
  std::vector<ValueId> inputs;
  for (const char* name : {"q", "k", "v"}) inputs.push_back(graph.add_input(name, f32({2, 3, 5, depth})));
  graph.outputs = {graph.add(Op::attention, inputs)};
  return graph;
}

std::int64_t count(const Graph& graph, Op op) {
  return std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op == op; });
}

void expect_equal(const Graph& before, const Graph& after) {
  const std::vector<Tensor> inputs = random_inputs(before);
  const Tensor wanted = interpret(before, inputs)[0], got = interpret(after, inputs)[0];
  ASSERT_EQ(wanted.dims(), got.dims());
  for (std::int64_t k = 0; k < wanted.size(); ++k)
    ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-5) << "at " << k;
}

TEST(WidenAttention, ForATemplate) {
  const Graph graph = attention_of_depth(6);
  const Graph wide = widen_attention(graph, options());
  EXPECT_EQ(count(wide, Op::pad), 3);
  expect_equal(graph, wide);
  EXPECT_EQ(count(divide_attention(wide, options()), Op::attention), 1);
}

TEST(WidenAttention, DeepHeadsForProducts) {
  const Graph graph = attention_of_depth(20);
  const Graph wide = widen_attention(graph, options());
  EXPECT_EQ(count(wide, Op::pad), 3);
  const Graph divided = divide_attention(wide, options());
  EXPECT_EQ(count(divided, Op::attention), 0);
  EXPECT_EQ(count(divided, Op::matmul), 2);
  expect_equal(graph, divided);
}

TEST(WidenAttention, NotWhereItGainsNothing) {
  for (const std::int64_t depth : {16, 24}) {
    const Graph graph = attention_of_depth(depth);
    EXPECT_EQ(widen_attention(graph, options()).nodes().size(), graph.nodes().size()) << depth;
  }
}

}  // namespace
}  // namespace sylvite::widen_attention_test
