// The passes of a frontend in a row.

#include "frontend/passes/pass_list.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "sylvite/graph_text.h"

namespace sylvite::pass_list_test {
namespace {

TEST(PassList, RunAllInOrderAndReport) {
  const Graph graph = parse_graph(
      "graph g(%x: f32[4]) {\n  %c2 = constant f32[] {2.0}\n  %a: f32[4] = mul(%x, %c2)\n"
      "  %b: f32[4] = exp(%a)\n  %c: f32[4] = log(%b)\n  return %c\n}\n");
  PassRunner runner;
  const Graph after = run_passes(graph, {}, runner);
  EXPECT_EQ(after.nodes().size(), 1U);
  ASSERT_EQ(runner.reports().size(), frontend_passes().size());
  const auto result_of = [&](std::string_view name) {
    return std::ranges::find(runner.reports(), name, &PassReport::name)->result;
  };
  EXPECT_EQ(result_of("simplify_algebra"), PassResult::changed);
  EXPECT_EQ(result_of("fold_constants"), PassResult::unchanged);
  EXPECT_EQ(result_of("store_narrow"), PassResult::not_applicable) << "all stays f32";
}

TEST(Rewrite, SameStructureIgnoresNames) {
  const Graph a = parse_graph("graph g(%x: f32[4]) {\n  %a: f32[4] = exp(%x)\n  return %a\n}\n");
  const Graph b = parse_graph("graph g(%x: f32[4]) {\n  %b: f32[4] = exp(%x)\n  return %b\n}\n");
  const Graph c = parse_graph("graph g(%x: f32[4]) {\n  %b: f32[4] = log(%x)\n  return %b\n}\n");
  EXPECT_TRUE(same_structure(a, b));
  EXPECT_FALSE(same_structure(a, c));
}

TEST(FoldConstants, LeavesLongWorkAsNodes) {
  Graph graph;
  const ValueId weight = graph.add_constant(Tensor(DType::f32, {1 << 11, 1 << 11}));
  graph.outputs = {graph.add(Op::matmul, {weight, weight}), graph.add(Op::exp, {weight})};
  const Graph after = run_passes(graph);
  ASSERT_EQ(after.nodes().size(), 1U) << "2^33 steps are too many, 2^22 are not";
  EXPECT_EQ(after.nodes()[0].op, Op::matmul);
}

}  // namespace
}  // namespace sylvite::pass_list_test
