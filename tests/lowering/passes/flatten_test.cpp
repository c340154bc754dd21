#include <gmock/gmock.h>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/views.h"
#include "frontend/ops/op_table.h"
#include "lowering/passes/pass_list.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::flatten_test {
namespace {

/// The operations of a graph in order.
std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> result;
  for (const Node& node : graph.nodes()) result.emplace_back(op_info(node.op).name);
  return result;
}

using testing::ElementsAre;

TEST(Flatten, MatmulAndItsEpilogueAreTwoDimensional) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 4}));
  const ValueId residual = graph.add_input("residual", f32({2, 3, 8}));
  graph.outputs = {graph.add(Op::add, {dense(graph, x, 8), residual}, {}, "sum")};
  const Graph result = flatten(graph, {});
  EXPECT_THAT(names(result), ElementsAre("reshape", "matmul", "add", "reshape", "add", "reshape"));
  expect_lowers_faithfully(graph);
  EXPECT_EQ(lower(graph).launches.size(), 1U);
}

TEST(Flatten, AProductOfSeveralMatricesIsFinishedAsItIs) {
  Graph graph;
  const ValueId residual = dense(graph, graph.add_input("x", f32({2, 3, 4})), 8);
  const ValueId mixed = graph.add(Op::matmul, {weight(graph, {3, 3}), residual});
  graph.outputs = {graph.add(Op::add, {mixed, residual}, {}, "sum")};
  const Graph result = flatten(graph, {});
  for (const Node& node : result.nodes())
    if (node.name == "sum") EXPECT_EQ(result.type(node.outputs[0]).dims(), (Dims{2, 3, 8}));
  expect_lowers_faithfully(graph);
  EXPECT_EQ(lower(graph).launches.size(), 2U);
}

/// Tokens behind the first of each image.
TEST(Flatten, SlicesWhoseRowsLieApartAreReadByTemplatesWhereTheyLie) {
  LoweringOptions with_templates;
  with_templates.refuse_template = [](const Kernel&) { return ""; };
  for (const auto& [tokens, stays] : {std::pair{65, true}, {17, false}}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({2, tokens, 8}));
    const ValueId own = add_slice_along(graph, x, 1, 1, tokens - 1);
    graph.outputs = {graph.add(Op::relu, {dense(graph, own, 8)})};
    const auto rank_of_product = [](const Graph& result) {
      for (const Node& node : result.nodes())
        if (node.op == Op::matmul) return result.type(node.outputs[0]).rank();
      return 0;
    };
    EXPECT_EQ(rank_of_product(flatten(graph, with_templates)), stays ? 3 : 2) << tokens;
    EXPECT_EQ(rank_of_product(flatten(graph, {})), 2) << tokens;
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(flatten(graph, with_templates), inputs).at(0), interpret(graph, inputs).at(0),
                 1e-6);
  }
}

TEST(Flatten, WorkOnReshapedProductsOfSeveralMatricesComesAheadOfReshapes) {
  Graph graph;
  std::vector<ValueId> parts;
  for (const char* name : {"x", "y"})
    parts.push_back(
        reshape(graph, graph.add(Op::matmul, {weight(graph, {3, 3}), graph.add_input(name, f32({2, 3, 8}))}),
                {2, 3, 4, 2}));
  graph.outputs = {graph.add(Op::relu, {graph.add(Op::sub, parts)})};
  const Graph result = flatten(graph, {});
  EXPECT_THAT(names(result), ElementsAre("matmul", "matmul", "sub", "relu", "reshape"));
  expect_lowers_faithfully(graph);
  EXPECT_EQ(lower(graph).launches.size(), 2U);
}

TEST(Flatten, BroadcastThatMixesRowsStaysAsItIs) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 4}));
  const ValueId positions = graph.add_input("positions", f32({3, 8}));
  graph.outputs = {graph.add(Op::add, {dense(graph, x, 8), positions})};
  expect_lowers_faithfully(graph);
}

TEST(Flatten, ReductionsKeepTheirDims) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 4}));
  const ValueId sum = graph.add(Op::reduce_sum, {x}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{0}}});
  graph.outputs = {graph.add(Op::mul, {sum, scalar(graph, 0.25F)})};
  EXPECT_THAT(names(flatten(graph, {})), ElementsAre("reduce_sum", "mul", "reshape"));
  expect_lowers_faithfully(graph);
}

TEST(Flatten, FoldsOfReshapedProductsAreTwoDimensional) {
  const auto folded = [](const Dims& axes, std::int64_t keepdims, std::int64_t width = 512) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({2, 3, 4}));
    graph.outputs = {
        graph.add(Op::reduce_sum, {dense(graph, x, width)}, {{"axes", axes}, {"keepdims", keepdims}})};
    expect_lowers_faithfully(graph);
    return flatten(graph, {});
  };
  const auto fold_of = [](const Graph& graph) {
    for (const Node& node : graph.nodes())
      if (node.op == Op::reduce_sum) return node.attributes.integers("axes");
    return Dims{};
  };
  for (const std::int64_t keepdims : {0, 1}) {
    EXPECT_EQ(fold_of(folded({2}, keepdims)), Dims{1});
    EXPECT_EQ(fold_of(folded({0, 1}, keepdims)), Dims{0});
    EXPECT_EQ(fold_of(folded({0}, keepdims)), Dims{0}) << "rows that lie apart";
    EXPECT_EQ(fold_of(folded({0, 1, 2}, keepdims)), (Dims{0, 1, 2})) << "one result";
    EXPECT_EQ(fold_of(folded({0, 1}, keepdims, 8)), (Dims{0, 1})) << "few columns";
  }
}

TEST(Flatten, HeadsOfAMergedProductAreSlicedInPlace) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 12}));
  const ValueId part = graph.add(
      Op::slice, {x}, {{"starts", Dims{0, 0, 4}}, {"sizes", Dims{2, 3, 4}}, {"steps", Dims{1, 1, 1}}});
  graph.outputs = {transpose(graph, reshape(graph, part, {2, 3, 2, 2}), {0, 2, 1, 3})};
  EXPECT_THAT(names(flatten(graph, {})), ElementsAre("reshape", "slice", "transpose"));
  expect_lowers_faithfully(graph);
}

TEST(Flatten, ChainsOfViewsCollapse) {
  // As vision transformers unpack query, key and value.
  Graph graph;
  const ValueId x = graph.add_input("x", f32({5, 24}));
  const ValueId packed = transpose(graph, reshape(graph, x, {5, 1, 3, 8}), {2, 0, 1, 3});
  const ValueId one =
      graph.add(Op::slice, {packed},
                {{"starts", Dims{1, 0, 0, 0}}, {"sizes", Dims{1, 5, 1, 8}}, {"steps", Dims{1, 1, 1, 1}}});
  graph.outputs = {transpose(graph, reshape(graph, one, {5, 2, 4}), {1, 0, 2})};
  EXPECT_THAT(names(flatten(graph, {})), ElementsAre("reshape", "slice", "transpose"));
  expect_lowers_faithfully(graph);
}

TEST(Flatten, TransposesCompose) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 4}));
  graph.outputs = {transpose(graph, transpose(graph, x, {1, 2, 0}), {2, 0, 1})};
  const Graph result = flatten(graph, {});
  EXPECT_EQ(result.outputs, result.inputs);
}

TEST(Horizontal, QueryKeyAndValueAreOneProduct) {
  const Graph graph = encoder(1);
  const Graph merged = merge_matmuls(flatten(graph, {}));
  int matmuls = 0;
  for (const Node& node : merged.nodes()) matmuls += node.op == Op::matmul ? 1 : 0;
  EXPECT_EQ(matmuls, 4) << graph_text(merged);
}

TEST(Horizontal, ProductsWithEpiloguesStayApart) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({3, 8}));
  graph.outputs = {graph.add(Op::mul, {graph.add(Op::silu, {dense(graph, x, 8)}), dense(graph, x, 8)})};
  EXPECT_EQ(names(merge_matmuls(graph)), names(graph));
  EXPECT_EQ(lower(graph).launches.size(), 2U);
}

}  // namespace
}  // namespace sylvite::flatten_test
