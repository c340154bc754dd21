#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::pick_shares_test {
namespace {

/// `count` elements of each row of [3, 5, 40], along `axis`, all of them once.
Graph picked(Op op, std::int64_t count, std::int64_t axis = 2, std::int64_t rows = 5) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({3, 5, 40}));
  const ValueId shares = graph.add(op, {x}, {{"axis", axis}});
  Tensor places(DType::i64, {3, rows, count});
  for (std::int64_t i = 0; i < places.size(); ++i) places.set_int64(i, i * 7 % (axis == 2 ? 40 : 5));
  graph.outputs = {graph.add(Op::gather_elements, {shares, graph.add_constant(places)}, {{"axis", axis}})};
  return graph;
}

bool has_softmax(const Graph& graph) {
  return std::ranges::any_of(
      graph.nodes(), [](const Node& node) { return node.op == Op::softmax || node.op == Op::log_softmax; });
}

TEST(PickShares, FewOfARowAreMadeWithoutTheOthers) {
  for (const Op op : {Op::softmax, Op::log_softmax})
    for (const std::int64_t count : {1, 5}) {
      const Graph graph = picked(op, count), made = pick_shares(graph);
      EXPECT_FALSE(has_softmax(made));
      const std::vector<Tensor> inputs = random_inputs(graph);
      const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(made, inputs).at(0);
      ASSERT_EQ(wanted.type(), got.type());
      for (std::int64_t i = 0; i < wanted.size(); ++i)
        ASSERT_NEAR(wanted.as_double(i), got.as_double(i), 1e-5);
    }
}

TEST(PickShares, OthersStay) {
  EXPECT_TRUE(has_softmax(pick_shares(picked(Op::softmax, 6))));        // many
  EXPECT_TRUE(has_softmax(pick_shares(picked(Op::softmax, 1, 1))));     // of columns
  EXPECT_TRUE(has_softmax(pick_shares(picked(Op::softmax, 1, 2, 4))));  // of some rows
  Graph read_twice = picked(Op::log_softmax, 1);
  read_twice.outputs.push_back(read_twice.nodes()[0].outputs[0]);
  EXPECT_TRUE(has_softmax(pick_shares(read_twice)));
}

}  // namespace
}  // namespace sylvite::pick_shares_test
