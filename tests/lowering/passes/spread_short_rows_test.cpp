#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::spread_short_rows_test {
namespace {

Graph fold_of(Op op, const Dims& dims, std::int64_t axis, DType dtype, std::int64_t keepdims) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(dtype, dims));
  graph.outputs = {graph.add(op, {x}, {{"axes", Dims{axis}}, {"keepdims", keepdims}})};
  return graph;
}

Graph softmax_of(Op op, const Dims& dims, std::int64_t axis, DType dtype = DType::bf16) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(dtype, dims));
  graph.outputs = {graph.add(op, {x}, {{"axis", axis}})};
  return graph;
}

TEST(SpreadShortRows, SoftmaxOfFewInnermostElementsAreWorkOnSlices) {
  for (const Op op : {Op::softmax, Op::log_softmax}) {
    for (const std::int64_t elements : {2, 3, 4}) {
      for (const DType dtype : {DType::bf16, DType::f32}) {
        const Graph graph = softmax_of(op, {2, 32, 64, elements}, 3, dtype),
                    spread = spread_short_rows(graph);
        EXPECT_EQ(std::ranges::count(spread.nodes(), op, &Node::op), 0);
        EXPECT_EQ(std::ranges::count(spread.nodes(), Op::slice, &Node::op), elements);
        EXPECT_EQ(spread.type(spread.outputs[0]), graph.type(graph.outputs[0]));
        const std::vector<Tensor> inputs = random_inputs(graph);
        expect_close(interpret(spread, inputs).at(0), interpret(graph, inputs).at(0));
      }
    }
  }
}

TEST(SpreadShortRows, FoldsOfFewInnermostElementsAreWorkOnSlices) {
  for (const Op op : {Op::reduce_sum, Op::reduce_max, Op::reduce_min, Op::reduce_prod}) {
    for (const std::int64_t elements : {2, 3, 4}) {
      const Graph graph = fold_of(op, {2, 32, 64, elements}, 3, DType::bf16, elements == 3 ? 1 : 0);
      const Graph spread = spread_short_rows(graph);
      EXPECT_EQ(std::ranges::count(spread.nodes(), op, &Node::op), 0);
      EXPECT_EQ(spread.type(spread.outputs[0]), graph.type(graph.outputs[0]));
      const std::vector<Tensor> inputs = random_inputs(graph);
      expect_close(interpret(spread, inputs).at(0), interpret(graph, inputs).at(0));
    }
  }
}

TEST(SpreadShortRows, OfPartsOfChannelsAreEveryNthChannel) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 12, 32, 32}));
  const ValueId cut = add_reshape(graph, x, {2, 4, 3, 32, 32});
  graph.outputs = {
      graph.add(Op::reduce_max, {cut}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{0}}}, "greatest")};
  const Graph spread = spread_short_rows(graph);
  EXPECT_EQ(std::ranges::count(spread.nodes(), Op::reshape, &Node::op), 0);
  EXPECT_EQ(std::ranges::count(spread.nodes(), Op::slice, &Node::op), 3);
  const std::vector<Tensor> inputs = random_inputs(graph);
  expect_close(interpret(spread, inputs).at(0), interpret(graph, inputs).at(0));
}

TEST(SpreadShortRows, FoldsOfFewElementsOfAnyDimAreWorkOnSlices) {
  for (const std::int64_t axis : {0, 1}) {
    const Graph graph = fold_of(Op::reduce_sum, {3, 3, 64, 40}, axis, DType::bf16, axis);
    const Graph spread = spread_short_rows(graph);
    EXPECT_EQ(std::ranges::count(spread.nodes(), Op::reduce_sum, &Node::op), 0);
    EXPECT_EQ(spread.type(spread.outputs[0]), graph.type(graph.outputs[0]));
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(spread, inputs).at(0), interpret(graph, inputs).at(0));
  }
}

TEST(SpreadShortRows, OtherFoldsStay) {
  for (const Graph& graph : {fold_of(Op::reduce_sum, {4096, 5}, 1, DType::f32, 0),
                             fold_of(Op::reduce_sum, {5, 4096}, 0, DType::f32, 0),
                             fold_of(Op::reduce_sum, {4096, 2}, 1, DType::i32, 0),
                             fold_of(Op::reduce_max, {16, 2}, 1, DType::f32, 0)})
    EXPECT_TRUE(same_structure(spread_short_rows(graph), graph));
}

TEST(SpreadShortRows, LargeNumbersStayFinite) {
  const Graph graph = softmax_of(Op::softmax, {4096, 2}, 1, DType::f32);
  Tensor x(DType::f32, {4096, 2});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, i % 2 == 0 ? 1000. : -1000.);
  const Tensor made = interpret(spread_short_rows(graph), {x}).at(0);
  EXPECT_EQ(made.as_double(0), 1.);
  EXPECT_EQ(made.as_double(1), 0.);
}

TEST(SpreadShortRows, OthersStay) {
  for (const Graph& graph : {softmax_of(Op::softmax, {4096, 5}, 1), softmax_of(Op::softmax, {4096, 1}, 1),
                             softmax_of(Op::softmax, {2, 4096}, 0), softmax_of(Op::softmax, {16, 2}, 1)})
    EXPECT_TRUE(same_structure(spread_short_rows(graph), graph));
}

}  // namespace
}  // namespace sylvite::spread_short_rows_test
