#include <gmock/gmock.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::split_concats_test {
namespace {

/// Rows of x behind one another in reverse, each after a function of its own if `computed`.
Graph reversed_rows(std::int64_t rows, std::int64_t axis, bool computed = false) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({rows, 2, 16}));
  std::vector<ValueId> parts;
  for (std::int64_t i = rows; i-- > 0;) {
    const ValueId row = graph.add(
        Op::slice, {x}, {{"starts", Dims{i, 0, 0}}, {"sizes", Dims{1, 2, 16}}, {"steps", Dims{1, 1, 1}}});
    parts.push_back(computed ? graph.add(i % 2 == 0 ? Op::tanh : Op::relu, {row}) : row);
  }
  graph.outputs = {graph.add(Op::neg, {graph.add(Op::concat, parts, {{"axis", axis}})})};
  return graph;
}

std::size_t most_inputs(const Graph& graph) {
  std::size_t most = 0;
  for (const Node& node : graph.nodes()) most = std::max(most, node.inputs.size());
  return most;
}

TEST(SplitConcats, KernelsHaveABoundedNumberOfParts) {
  for (const std::int64_t rows : {33, 64, 600, 2100}) {
    const Graph graph = reversed_rows(rows, 1);
    const Graph narrow = split_concats(graph);
    EXPECT_LE(most_inputs(narrow), most_concat_inputs) << rows;
    EXPECT_EQ(narrow.type(narrow.outputs[0]), graph.type(graph.outputs[0]));
    std::size_t most = 0;
    for (const Kernel& kernel : lower(graph).kernels) most = std::max(most, most_inputs(kernel.body));
    EXPECT_LE(most, most_concat_inputs) << rows;
  }
}

TEST(SplitConcats, ResultsStay) {
  for (const std::int64_t axis : {0, 1, 2}) {
    expect_lowers_faithfully(reversed_rows(70, axis));
    expect_lowers_faithfully(reversed_rows(70, axis, true));
  }
}

TEST(SplitConcats, FewInputsAreLeftAlone) {
  const Graph graph = reversed_rows(static_cast<std::int64_t>(most_concat_inputs), 0);
  EXPECT_TRUE(same_structure(split_concats(graph), graph));
}

/// As for concats of fewer inputs.
TEST(SplitConcats, PartsThatKernelsMakeAreStillWrittenInPlace) {
  for (const Kernel& kernel : lower(reversed_rows(70, 0, true)).kernels)
    EXPECT_THAT(kernel.text, testing::Not(testing::HasSubstr("concat")));
}

}  // namespace
}  // namespace sylvite::split_concats_test
