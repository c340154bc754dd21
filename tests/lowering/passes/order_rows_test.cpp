#include <gmock/gmock.h>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::order_rows_test {
namespace {

/// Attention of torch's multi-head module: rows come before the batch inside it. 5 rows, a batch of 3, 2
/// heads.
ValueId rows_first_attention(Graph& graph, ValueId x) {
  const ValueId rows = transpose(graph, x, {1, 0, 2});
  const ValueId split = reshape(graph, dense(graph, rows, 24), {5, 3, 3, 8});
  std::vector<ValueId> heads;
  for (std::int64_t i = 0; i < 3; ++i) {
    const ValueId part =
        graph.add(Op::slice, {split},
                  {{"starts", Dims{0, 0, i, 0}}, {"sizes", Dims{5, 3, 1, 8}}, {"steps", Dims{1, 1, 1, 1}}});
    const ValueId merged = transpose(graph, reshape(graph, part, {5, 6, 4}), {1, 0, 2});
    heads.push_back(reshape(graph, merged, {3, 2, 5, 4}));
  }
  const ValueId attended = transpose(graph, graph.add(Op::attention, heads), {2, 0, 1, 3});
  const ValueId projected = dense(graph, reshape(graph, attended, {15, 8}), 8);
  return transpose(graph, reshape(graph, projected, {5, 3, 8}), {1, 0, 2});
}

TEST(RowOrder, TransposesAroundAnAttentionCancel) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({3, 5, 8}));
  graph.outputs = {graph.add(Op::add, {rows_first_attention(graph, x), x})};
  expect_lowers_faithfully(graph);
  EXPECT_EQ(lower(graph).launches.size(), 3U);  // projection, attention, projection and sum
}

TEST(RowOrder, ModelsThatStayRowsFirstAreLeftAlone) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 8}));
  const ValueId residual = graph.add_input("residual", f32({3, 2, 8}));
  const ValueId rows = transpose(graph, x, {1, 0, 2});
  graph.outputs = {graph.add(Op::add, {dense(graph, rows, 8), residual})};
  EXPECT_TRUE(same_structure(order_rows(graph), graph));
  expect_lowers_faithfully(graph);
}

TEST(RowOrder, AProductThatIsAnOutputIsLeftAlone) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 8}));
  const ValueId product = dense(graph, transpose(graph, x, {1, 0, 2}), 8);
  graph.outputs = {product, transpose(graph, product, {1, 0, 2})};
  EXPECT_TRUE(same_structure(order_rows(graph), graph));
}

/// Windows of 2 x 2 pixels, whose rows do not lie in steps.
TEST(RowOrder, WindowsAreCopiedWhereTheyAreNarrow) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 4, 6, 8}));
  const ValueId cut = transpose(graph, reshape(graph, x, {2, 2, 2, 3, 2, 8}), {0, 1, 3, 2, 4, 5});
  const ValueId heads = reshape(graph, dense(graph, reshape(graph, cut, {12, 4, 8}), 24), {12, 4, 3, 8});
  const ValueId turned = transpose(graph, heads, {2, 0, 1, 3});
  std::vector<ValueId> inputs;
  inputs.reserve(3);
  for (std::int64_t i = 0; i < 3; ++i)
    inputs.push_back(reshape(
        graph,
        graph.add(Op::slice, {turned},
                  {{"starts", Dims{i, 0, 0, 0}}, {"sizes", Dims{1, 12, 4, 8}}, {"steps", Dims{1, 1, 1, 1}}}),
        {12, 4, 8}));
  graph.outputs = {graph.add(Op::attention, inputs)};
  EXPECT_TRUE(same_structure(order_rows(graph), graph)) << "rows of 24 numbers would be copied, not of 8";
  expect_lowers_faithfully(graph);
}

Graph patches(const Dims& pads) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 8, 12}));
  const ValueId w = weight(graph, {10, 3, 4, 4});
  const ValueId bias = weight(graph, {10}, 2);
  graph.outputs = {graph.add(
      Op::conv, {x, w, bias},
      {{"strides", Dims{4, 4}}, {"pads", pads}, {"dilations", Dims{1, 1}}, {"groups", std::int64_t{1}}})};
  return graph;
}

TEST(Patches, AreRowsOfAProduct) {
  const Graph graph = patches({0, 0, 0, 0});
  const Graph multiplied = multiply_patches(graph, {});
  for (const Node& node : multiplied.nodes()) EXPECT_NE(node.op, Op::conv);
  const std::vector<Tensor> inputs = random_inputs(graph);
  expect_close(interpret(multiplied, inputs).at(0), interpret(graph, inputs).at(0));
}

TEST(Patches, OfManyChannelsStayAConvolutionWhereTheyLieInnermost) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 16, 8, 12}));
  graph.outputs = {graph.add(Op::conv, {x, weight(graph, {8, 16, 2, 2})},
                             {{"strides", Dims{2, 2}},
                              {"pads", Dims{0, 0, 0, 0}},
                              {"dilations", Dims{1, 1}},
                              {"groups", std::int64_t{1}}})};
  LoweringOptions options;
  EXPECT_FALSE(same_structure(multiply_patches(graph, options), graph));
  options.image_layout = ImageLayout::channels_last;
  EXPECT_FALSE(same_structure(multiply_patches(graph, options), graph));
  options.tf32 = true;
  EXPECT_TRUE(same_structure(multiply_patches(graph, options), graph));
}

TEST(Patches, OverTheBorderStayAConvolution) {
  const Graph graph = patches({0, 0, 4, 0});
  EXPECT_TRUE(same_structure(multiply_patches(graph, {}), graph));
}

}  // namespace
}  // namespace sylvite::order_rows_test
