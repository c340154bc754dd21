#include "lowering/passes/fold_scans.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::fold_scans_test {
namespace {

Graph scan(const Dims& dims, std::int64_t axis, std::int64_t exclusive, std::int64_t reverse) {
  Graph graph;
  graph.outputs = {graph.add(Op::cumsum, {graph.add_input("x", f32(dims))},
                             {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}})};
  return graph;
}

TEST(FoldScans, SumsOfThoseThatCount) {
  for (const std::int64_t axis : {0, 1, 2})
    for (const std::int64_t exclusive : {0, 1})
      for (const std::int64_t reverse : {0, 1}) {
        const Graph graph = scan({3, 7, 5}, axis, exclusive, reverse), sums = fold_scans(graph);
        const bool stays = axis == 0;  // of columns side by side
        EXPECT_EQ(std::ranges::any_of(sums.nodes(), [](const Node& node) { return node.op == Op::cumsum; }),
                  stays);
        const std::vector<Tensor> inputs = random_inputs(graph);
        const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(sums, inputs).at(0);
        ASSERT_EQ(wanted.dims(), got.dims());
        for (std::int64_t k = 0; k < wanted.size(); ++k)
          ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-5);
        expect_lowers_faithfully(sums);
      }
}

TEST(FoldScans, LongRowsAreScannedInParts) {
  for (const auto& [dims, part] :
       {std::pair{Dims{2, 1 << 13, 3}, Dims{2, 1 << 8, 32, 3}}, std::pair{Dims{1 << 14}, Dims{16, 1024}},
        std::pair{Dims{3, 10001}, Dims{30, 1024}}})
    for (const std::int64_t exclusive : {0, 1})
      for (const std::int64_t reverse : {0, 1}) {
        const auto axis = dims.size() == 1 ? std::int64_t{0} : std::int64_t{1};
        const Graph graph = scan(dims, axis, exclusive, reverse), sums = fold_scans(graph);
        for (const Node& node : sums.nodes())
          if (node.op == Op::cumsum) EXPECT_EQ(sums.type(node.inputs[0]).dims(), part);
        const std::vector<Tensor> inputs = random_inputs(graph);
        expect_close(interpret(sums, inputs).at(0), interpret(graph, inputs).at(0), 1e-4);
      }
}

TEST(FoldScans, LongOnesOfManyRowsStay) {
  const Graph graph = scan({1 << 17, 256}, 1, 0, 0), sums = fold_scans(graph);
  const auto found = std::ranges::find(sums.nodes(), Op::cumsum, &Node::op);
  ASSERT_NE(found, sums.nodes().end());
  EXPECT_EQ(sums.type(found->inputs[0]).dims(), (Dims{1 << 17, 256}));
}

TEST(FoldScans, ColumnsSideBySideStayUpToSomeLength) {
  for (const auto& [dims, scanned] :
       {std::pair{Dims{8192, 768}, Dims{8192, 768}}, std::pair{Dims{2, 300, 40}, Dims{2, 300, 40}},
        std::pair{Dims{2, 1 << 12, 64}, Dims{2, 4, 1024, 64}}}) {
    const Graph graph = scan(dims, 1, 0, 0), sums = fold_scans(graph);
    const auto found = std::ranges::find(sums.nodes(), Op::cumsum, &Node::op);
    ASSERT_NE(found, sums.nodes().end());
    EXPECT_EQ(sums.type(found->inputs[0]).dims(), scanned);
  }
}

}  // namespace
}  // namespace sylvite::fold_scans_test
