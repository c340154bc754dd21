#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"

namespace sylvite::align_rows_test {
namespace {

std::size_t count_of(const Graph& graph, Op op) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes()) count += node.op == op ? 1 : 0;
  return count;
}

/// As the two products of a table's gradients: g w and g' x.
Graph products(std::int64_t rows, std::int64_t columns, std::int64_t depth) {
  Graph graph;
  const ValueId g = graph.add_input("g", make_type(DType::bf16, {rows, columns}));
  const ValueId w = graph.add_input("w", make_type(DType::bf16, {columns, depth}));
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {rows, depth}));
  graph.outputs = {graph.add(Op::matmul, {g, w}),
                   graph.add(Op::matmul, {add_transpose(graph, g, {1, 0}), x})};
  return graph;
}

TEST(AlignRows, ProductsShareACopy) {
  const Graph aligned = align_rows(products(2048, 5001, 768), false);
  EXPECT_EQ(count_of(aligned, Op::pad), 1U);
  EXPECT_EQ(count_of(aligned, Op::slice), 1U);
  for (const Node& node : aligned.nodes())
    if (node.op == Op::pad) EXPECT_EQ(aligned.type(node.outputs[0]).dims(), (Dims{2048, 5008}));
}

TEST(AlignRows, LeavesWholeRowsSmallProductsAndFewUses) {
  for (const Graph& graph : {products(2048, 5008, 768), products(64, 101, 768), products(65536, 50001, 8)})
    EXPECT_TRUE(same_structure(align_rows(graph, false), graph));
}

TEST(AlignRows, CopiesFewRowsBesideManyWeights) {
  for (const std::int64_t rows : {32, 4096}) {
    Graph graph;
    const ValueId x = graph.add_input("x", make_type(DType::bf16, {rows, 6420}));
    const ValueId w = graph.add_constant(Tensor(DType::bf16, {6420, 512}));
    graph.outputs = {graph.add(Op::matmul, {x, w})};
    EXPECT_EQ(count_of(align_rows(graph, false), Op::pad), 1U);
  }
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {32, 1021}));
  graph.outputs = {graph.add(Op::matmul, {x, graph.add_constant(Tensor(DType::bf16, {1021, 512}))})};
  EXPECT_EQ(count_of(align_rows(graph, false), Op::pad), 0U);
}

TEST(AlignRows, LeavesWeightsWhichArePacked) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {4096, 1024}));
  const ValueId w = graph.add_constant(Tensor(DType::bf16, {1024, 1001}));
  graph.outputs = {graph.add(Op::matmul, {x, w})};
  EXPECT_TRUE(same_structure(align_rows(graph, false), graph));
}

/// What the products of a graph read.
std::vector<Tensor> operands(Graph graph, const std::vector<Tensor>& inputs) {
  graph.outputs.clear();
  for (const Node& node : graph.nodes())
    if (node.op == Op::matmul)
      graph.outputs.insert(graph.outputs.end(), node.inputs.begin(), node.inputs.end());
  return interpret(rewrite_nodes(graph, [](GraphRewriter&, const Node&) { return false; }), inputs);
}

TEST(AlignRows, ReadsTheSame) {
  const Graph graph = products(1024, 1029, 2048);
  std::vector<Tensor> inputs;
  for (const ValueId id : graph.inputs) {
    inputs.emplace_back(DType::bf16, graph.type(id).dims());
    for (std::int64_t i = 0; i < inputs.back().size(); ++i)
      inputs.back().set_double(i, static_cast<double>(i * 7 % 251));
  }
  const Graph aligned = align_rows(graph, false);
  ASSERT_EQ(count_of(aligned, Op::pad), 1U);
  const std::vector<Tensor> wanted = operands(graph, inputs), got = operands(aligned, inputs);
  ASSERT_EQ(wanted.size(), got.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(wanted[i].dims(), got[i].dims());
    for (std::int64_t j = 0; j < wanted[i].size(); ++j)
      ASSERT_EQ(wanted[i].as_double(j), got[i].as_double(j));
  }
}

}  // namespace
}  // namespace sylvite::align_rows_test
