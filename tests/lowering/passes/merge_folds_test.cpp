#include <gtest/gtest.h>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/merge_dense_folds.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::merge_folds_test {
namespace {

Attributes pixels(std::int64_t keepdims) {
  return {{"axes", Dims{2, 3}}, {"keepdims", keepdims}};
}

/// What the folds of a graph fold: the rank of their operands.
std::vector<std::int64_t> ranks_of_folds(const Graph& graph) {
  std::vector<std::int64_t> ranks;
  for (const Node& node : graph.nodes())
    if (node.op == Op::layer_norm || node.op == Op::reduce_sum || node.op == Op::reduce_max)
      ranks.push_back(graph.type(node.inputs[0]).rank());
  return ranks;
}

void expect_same_results(const Graph& graph, const Graph& changed) {
  const std::vector<Tensor> inputs = random_inputs(graph);
  const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(changed, inputs).at(0);
  ASSERT_EQ(wanted.dims(), got.dims());
  for (std::int64_t k = 0; k < wanted.size(); ++k) ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-5);
}

TEST(MergeFolds, ReductionsOverTheLastDimsFoldOne) {
  for (const Op op : {Op::reduce_sum, Op::reduce_max})
    for (const std::int64_t keepdims : {0, 1}) {
      Graph graph;
      graph.outputs = {graph.add(op, {graph.add_input("x", f32({2, 3, 4, 5}))}, pixels(keepdims))};
      const Graph changed = merge_folds(graph, true);
      EXPECT_EQ(ranks_of_folds(changed), std::vector<std::int64_t>{3});
      expect_same_results(graph, changed);
    }
}

TEST(MergeFolds, NormsOfVolumesFoldRowsWithTheirScales) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 4, 5, 2}));
  graph.outputs = {graph.add(Op::layer_norm, {x, weight(graph, {5, 2}, 1), weight(graph, {5, 2}, 2)},
                             {{"axis", std::int64_t{3}}, {"epsilon", 1e-5}})};
  const Graph changed = merge_folds(graph, true);
  EXPECT_EQ(ranks_of_folds(changed), std::vector<std::int64_t>{4});
  expect_same_results(graph, changed);
}

TEST(MergeFolds, ImagesBehindConvolutionsStay) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), 16, 3);
  const ValueId both = graph.add(Op::concat, {x, graph.add(Op::relu, {x})}, {{"axis", std::int64_t{1}}});
  graph.outputs = {graph.add(Op::reduce_sum, {both}, pixels(1))};
  EXPECT_TRUE(same_structure(merge_folds(graph, true), graph));
  EXPECT_EQ(ranks_of_folds(merge_folds(graph, false)), std::vector<std::int64_t>{3});  // without tensor cores
}

TEST(MergeFolds, ShortLastDimsFoldWithThoseAhead) {
  for (const auto& [columns, rank] : {std::pair{5, 3}, {16, 4}}) {
    Graph graph;
    graph.outputs = {graph.add(Op::reduce_max, {graph.add_input("x", f32({2, 3, 4, columns}))}, pixels(1))};
    const Graph changed = merge_short_folds(graph);
    EXPECT_EQ(ranks_of_folds(changed), std::vector<std::int64_t>{rank});
    expect_same_results(graph, changed);
  }
  Graph graph;  // channels of an image, however many, may lie in blocks
  graph.outputs = {
      graph.add(Op::reduce_sum, {conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), 6, 3)}, pixels(1))};
  EXPECT_TRUE(same_structure(merge_short_folds(graph), graph));
}

TEST(MergeFolds, DenseImagesFoldOneOnceLayoutsAreKnown) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), 16, 3);
  graph.outputs = {graph.add(Op::reduce_sum, {x}, pixels(1))};
  const Graph dense = merge_dense_folds(graph);
  EXPECT_EQ(ranks_of_folds(dense), std::vector<std::int64_t>{3});
  expect_same_results(graph, dense);
  LoweringOptions options = channels_last();
  options.tf32 = true;
  const Graph innermost = assign_layouts(graph, options);
  EXPECT_TRUE(same_structure(merge_dense_folds(innermost), innermost));
}

TEST(MergeFolds, DimsThatLieApartStay) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 4, 5}));
  graph.outputs = {graph.add(Op::reduce_sum, {x}, {{"axes", Dims{1, 3}}, {"keepdims", std::int64_t{1}}})};
  EXPECT_TRUE(same_structure(merge_folds(graph, true), graph));
}

}  // namespace
}  // namespace sylvite::merge_folds_test
