// Pools of quantised values, as they stand between DequantizeLinear and QuantizeLinear.

#include <algorithm>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::pool_steps_test {
namespace {

Sym real(Sym steps, Sym zero, Sym scale) {
  return (cast(steps, DType::f32) - cast(zero, DType::f32)) * scale;
}

Sym pooled(Sym x) {
  return x.builder().add(Op::max_pool, {x},
                         {{"kernel", Dims{3, 3}},
                          {"strides", Dims{2, 2}},
                          {"pads", Dims{1, 1, 1, 1}},
                          {"dilations", Dims{1, 1}}});
}

struct Case {
  double scale = 0.03, later_scale = 0.03;  ///< of what is pooled, and of what is made of it
  double zero = 100, later_zero = 100;
};

Graph pool_between(const Case& c) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::u8, {2, 3, 9, 8});
  const Sym y = pooled(real(x, builder.scalar(DType::u8, c.zero), builder.scalar(DType::f32, c.scale)));
  builder.output(
      builder.add(Op::round,
                  {y, builder.scalar(DType::f32, c.later_scale), builder.scalar(DType::u8, c.later_zero)},
                  {{"to", "u8"}}),
      "y");
  return graph;
}

std::int64_t count(const Graph& graph, Op op) {
  return std::ranges::count(graph.nodes(), op, &Node::op);
}

TEST(PoolSteps, PoolsIntegersAndMakesThemOnce) {
  Tensor x = counting({2, 3, 9, 8}, DType::u8);
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_int64(i, i * 97 % 256);
  for (const Case& c : {Case{}, Case{0.03, 0.02}, Case{0.03, 0.03, 100, 90}}) {
    const Graph before = pool_between(c);
    const Graph after = pool_steps(before);
    verify(after);
    const auto pool = std::ranges::find(after.nodes(), Op::max_pool, &Node::op);
    EXPECT_EQ(after.type(pool->outputs[0]).dtype, DType::u8);
    const bool is_same = c.scale == c.later_scale && c.zero == c.later_zero;
    EXPECT_EQ(count(after, Op::round), is_same ? 0 : 1);
    EXPECT_EQ(interpret(after, {x})[0].to_int64s(), interpret(before, {x})[0].to_int64s());
  }
}

TEST(PoolSteps, SumsIntegers) {
  Tensor x(DType::u8, {2, 3, 9, 8});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_int64(i, i * 97 % 256);
  for (const double zero : {0.0, 100.0}) {
    Graph graph;
    GraphBuilder builder(graph);
    const Sym steps = builder.input("x", DType::u8, {2, 3, 9, 8});
    const Sym all = real(steps, builder.scalar(DType::u8, zero), builder.scalar(DType::f32, 0.03));
    builder.output(reduce(Op::reduce_sum, all, {1, 3}), "y");
    const Graph before = fold_constants(graph), after = pool_steps(before);
    verify(after);
    const auto sum = std::ranges::find(after.nodes(), Op::reduce_sum, &Node::op);
    EXPECT_EQ(after.type(sum->outputs[0]).dtype, DType::i32);
    const Tensor expected = interpret(before, {x})[0], actual = interpret(after, {x})[0];
    for (std::int64_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual.as_double(i), expected.as_double(i), 1e-4) << i;
  }
}

TEST(PoolSteps, LeavesOthersAlone) {
  for (const double scale : {-0.5, 0.5}) {
    Graph graph;
    GraphBuilder builder(graph);
    const Sym x = builder.input("x", scale < 0 ? DType::u8 : DType::i32, {2, 3, 9, 8});
    builder.output(pooled(cast(x, DType::f32) * scale), "y");
    EXPECT_TRUE(same_structure(pool_steps(graph), graph));
  }
}

}  // namespace
}  // namespace sylvite::pool_steps_test
