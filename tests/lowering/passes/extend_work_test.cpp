#include "lowering/passes/extend_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::extend_work_test {
namespace {

constexpr std::int64_t rows = 9, width = 6;

std::int64_t count(const Graph& graph, Op op) {
  return std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op == op; });
}

/// x * cosines + (its halves turned) * sines
ValueId rotated(Graph& graph, ValueId x, bool by_gather) {
  const std::int64_t size = graph.type(x).dims()[2];
  const auto table = [&](std::uint32_t seed) {
    return graph.add_constant(random_tensor({size, width}, seed));
  };
  ValueId turned = no_value;
  if (by_gather) {
    Tensor places(DType::i64, {width});
    for (std::int64_t i = 0; i < width; ++i) places.set_double(i, static_cast<double>(i ^ 1));
    turned = graph.add(Op::gather, {x, graph.add_constant(places)}, {{"axis", std::int64_t{3}}});
  } else {
    const ValueId first = add_slice_along(graph, x, 3, 0, width / 2);
    const ValueId second = add_slice_along(graph, x, 3, width / 2, width / 2);
    turned = graph.add(Op::concat, {graph.add(Op::neg, {second}), first}, {{"axis", std::int64_t{3}}});
  }
  return graph.add(Op::add, {graph.add(Op::mul, {x, table(1)}), graph.add(Op::mul, {turned, table(2)})});
}

/// Of [images, heads, rows, width] with `left` rows left as they are, ahead of the others or behind them.
Graph partly_rotated(std::int64_t left, bool ahead, bool by_gather) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, rows, width}));
  const ValueId rest = add_slice_along(graph, x, 2, ahead ? 0 : rows - left, left);
  const ValueId others =
      rotated(graph, add_slice_along(graph, x, 2, ahead ? left : 0, rows - left), by_gather);
  const std::vector<ValueId> parts = ahead ? std::vector{rest, others} : std::vector{others, rest};
  graph.outputs = {graph.add(Op::concat, parts, {{"axis", std::int64_t{2}}})};
  return graph;
}

TEST(ExtendWork, RowsThatAreLeftAsTheyAre) {
  for (const bool ahead : {true, false})
    for (const bool by_gather : {true, false}) {
      const Graph graph = partly_rotated(2, ahead, by_gather), extended = extend_work(graph);
      EXPECT_EQ(count(extended, Op::where), 1);
      EXPECT_EQ(count(extended, Op::concat), by_gather ? 0 : 1);
      std::vector<Tensor> inputs = random_inputs(graph);
      const std::int64_t left = ahead ? 0 : (rows - 1) * width;
      inputs[0].set_double(left, std::numeric_limits<double>::infinity());
      const Tensor wanted = interpret(graph, inputs)[0], got = interpret(extended, inputs)[0];
      for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(got.as_double(i), wanted.as_double(i)) << i;
      expect_lowers_faithfully(extended);
    }
}

TEST(ExtendWork, ManyRowsThatAreLeftStay) {
  const Graph graph = partly_rotated(4, true, true);
  EXPECT_TRUE(same_structure(extend_work(graph), graph));
}

TEST(ExtendWork, WorkAcrossRowsStays) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, rows, width}));
  const ValueId others = add_slice_along(graph, x, 2, 1, rows - 1);
  const ValueId softmax = graph.add(Op::softmax, {others}, {{"axis", std::int64_t{2}}});
  graph.outputs = {
      graph.add(Op::concat, {add_slice_along(graph, x, 2, 0, 1), softmax}, {{"axis", std::int64_t{2}}})};
  EXPECT_TRUE(same_structure(extend_work(graph), graph));
}

TEST(ExtendWork, RowsOfAnotherValueStay) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, rows, width}));
  const ValueId first = graph.add_input("first", f32({2, 3, 1, width}));
  const ValueId others = rotated(graph, add_slice_along(graph, x, 2, 1, rows - 1), true);
  graph.outputs = {graph.add(Op::concat, {first, others}, {{"axis", std::int64_t{2}}})};
  EXPECT_TRUE(same_structure(extend_work(graph), graph));
}

}  // namespace
}  // namespace sylvite::extend_work_test
