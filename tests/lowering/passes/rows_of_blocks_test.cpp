#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/plan.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::rows_of_blocks_test {
namespace {

/// Tokens [N, H*W, C] of a convolution's result of `channels`.
ValueId tokens(Graph& graph, ValueId image, std::int64_t channels, Op work) {
  const ValueId x = conv(graph, image, channels, 3);
  const Dims dims = graph.type(x).dims();
  const ValueId flat = graph.add(Op::reshape, {x}, {{"shape", Dims{dims[0], dims[1], dims[2] * dims[3]}}});
  return graph.add(work, {graph.add(Op::transpose, {flat}, {{"perm", Dims{0, 2, 1}}})});
}

std::size_t find(const Graph& graph, Op op) {
  const auto found = std::ranges::find_if(graph.nodes(), [&](const Node& node) { return node.op == op; });
  return static_cast<std::size_t>(found - graph.nodes().begin());
}

TEST(WorkAheadOfViews, IsDoneOnTheConvolutionsResult) {
  Graph graph;
  graph.outputs = {tokens(graph, graph.add_input("x", f32({2, 16, 5, 7})), 20, Op::gelu)};
  const Graph result = work_ahead_of_views(graph, {});
  EXPECT_EQ(find(result, Op::gelu), find(result, Op::conv) + 1);
  expect_lowers_faithfully(graph);
  EXPECT_LE(lower(graph).launches.size(), 3U);
}

TEST(WorkAheadOfViews, IsDoneOnImagesThatLieWithChannelsInnermost) {
  Graph graph;
  const ValueId image = conv(graph, graph.add_input("x", f32({2, 16, 5, 7})), 16, 3);
  const ValueId pair = graph.add(Op::mul, {image, image});
  const ValueId rows = graph.add(Op::reshape, {pair}, {{"shape", Dims{2, 16, 35}}});
  graph.outputs = {graph.add(Op::gelu, {rows})};
  LoweringOptions options = channels_last();
  options.tf32 = true;
  const Graph result = work_ahead_of_views(graph, options);
  EXPECT_LT(find(result, Op::gelu), find(result, Op::reshape));
  EXPECT_GT(find(work_ahead_of_views(graph, {}), Op::gelu), find(graph, Op::reshape));
  expect_lowers_faithfully(graph);
}

TEST(WorkAheadOfViews, OneNumberHasNoColumns) {
  Graph graph;
  const auto sum = [&](const char* name) {
    return graph.add(Op::reduce_sum, {graph.add_input(name, f32({5}))},
                     {{"axes", Dims{0}}, {"keepdims", std::int64_t{0}}});
  };
  const ValueId both = graph.add(Op::add, {sum("x"), sum("y")});
  graph.outputs = {graph.add(Op::gelu, {reshape(graph, both, {1})})};
  expect_lowers_faithfully(graph);
}

TEST(WorkAheadOfViews, IsDoneOnANormsResult) {
  Graph graph;
  const ValueId norm =
      graph.add(Op::layer_norm, {graph.add_input("x", f32({2, 5, 16}))}, {{"axis", std::int64_t{2}}});
  graph.outputs = {graph.add(Op::gelu, {transpose(graph, norm, {0, 2, 1})})};
  const Graph result = work_ahead_of_views(graph, {});
  EXPECT_EQ(find(result, Op::gelu), find(result, Op::layer_norm) + 1);
  expect_lowers_faithfully(graph);
}

TEST(WorkAheadOfViews, IsDoneOnAProductOfRowsThatBecomesAnImage) {
  for (const bool has_bias : {false, true}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({2, 35, 8}));
    ValueId rows = graph.add(Op::matmul, {x, weight(graph, {8, 16})});
    if (has_bias) rows = graph.add(Op::add, {rows, weight(graph, {16})});
    const ValueId image = reshape(graph, transpose(graph, rows, {0, 2, 1}), {2, 16, 5, 7});
    graph.outputs = {conv(graph, graph.add(Op::relu, {image}), 16, 3)};
    const Graph result = work_ahead_of_views(graph, {});
    EXPECT_LT(find(result, Op::relu), find(result, Op::transpose));
    expect_lowers_faithfully(graph);
  }
}

/// A step of a recurrence whose state lies in heads: what is given is added as it lies, and gates read rows of all heads.
TEST(WorkAheadOfViews, IsDoneOnProductsOfHeadsWithAnotherOperand) {
  LoweringOptions on_a_gpu;
  on_a_gpu.image_layout = ImageLayout::dense;
  on_a_gpu.refuse_template = [](const Kernel& kernel) -> std::string {
    return kernel.kind == KernelClass::matmul ? "" : "there is none";
  };
  Graph graph;
  const ValueId heads = transpose(graph, graph.add_input("state", f32({6, 4, 8})), {1, 0, 2});
  const ValueId told = transpose(graph, graph.add(Op::matmul, {heads, weight(graph, {4, 8, 16})}), {1, 0, 2});
  const ValueId sum = graph.add(Op::sub, {graph.add_input("given", f32({6, 4, 16})), told});
  const ValueId gate = graph.add(Op::sigmoid, {add_slice_along(graph, sum, 2, 0, 8)});
  const ValueId made = graph.add(Op::mul, {gate, add_slice_along(graph, sum, 2, 8, 8)});
  graph.outputs = {gate, made};
  const Graph result = work_ahead_of_views(graph, on_a_gpu);
  EXPECT_EQ(find(result, Op::sub), find(result, Op::matmul) + 2) << "behind the other operand's transpose";
  const Plan plan = lower(graph, on_a_gpu);
  EXPECT_EQ(plan.launches.size(), 2U);
  expect_faithful(graph, plan, 1e-4);
  EXPECT_TRUE(same_structure(work_ahead_of_views(graph, {}), graph));
}

TEST(WorkAheadOfViews, LeavesResultsThatOthersRead) {
  Graph graph;
  const ValueId y = tokens(graph, graph.add_input("x", f32({2, 16, 5, 7})), 20, Op::gelu);
  graph.outputs = {y, graph.node(graph.value(y).producer).inputs[0]};
  const Graph result = work_ahead_of_views(graph, {});
  EXPECT_GT(find(result, Op::gelu), find(result, Op::transpose));
}

TEST(RowsOfBlocks, TransposeComesBeforeTheReshape) {
  for (const std::int64_t channels : {16, 20, 48}) {
    Graph graph;
    graph.outputs = {tokens(graph, graph.add_input("x", f32({2, 16, 5, 7})), channels, Op::relu)};
    const Graph result = rows_of_blocks(assign_layouts(work_ahead_of_views(graph, {}), {}));
    EXPECT_LT(find(result, Op::transpose), find(result, Op::reshape));
    expect_lowers_faithfully(graph);
  }
}

TEST(RowsOfBlocks, LeavesReshapesThatSplitChannels) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({1, 16, 4, 4})), 32, 1);
  const ValueId heads = graph.add(Op::reshape, {x}, {{"shape", Dims{1, 2, 16, 16}}});
  graph.outputs = {graph.add(Op::transpose, {heads}, {{"perm", Dims{0, 1, 3, 2}}})};
  const Graph result = rows_of_blocks(assign_layouts(graph, {}));
  EXPECT_LT(find(result, Op::reshape), find(result, Op::transpose));
  expect_lowers_faithfully(graph);
}

}  // namespace
}  // namespace sylvite::rows_of_blocks_test
