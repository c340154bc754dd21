// Pools along one dim after the other.

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite {
namespace {

Graph pool(const Dims& kernel, const Dims& pads, const Dims& dilations, std::int64_t stride) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::f32, {1, 2, 9, 8});
  builder.output(
      builder.add(
          Op::max_pool, {x},
          {{"kernel", kernel}, {"pads", pads}, {"dilations", dilations}, {"strides", Dims{stride, stride}}}),
      "y");
  return graph;
}

TEST(SplitWindows, TheLargestIsTheLargestOfLines) {
  const Graph graphs[] = {pool({5, 5}, {2, 2, 2, 2}, {1, 1}, 1), pool({2, 3}, {0, 1, 1, 0}, {1, 1}, 1),
                          pool({3, 2}, {2, 0, 2, 1}, {2, 1}, 1)};
  for (const Graph& before : graphs) {
    const Graph after = split_windows(before);
    EXPECT_EQ(std::ranges::count(after.nodes(), Op::max_pool, &Node::op), 2);
    Tensor x(DType::f32, {1, 2, 9, 8});
    for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i * 37 % 101) - 90);
    EXPECT_EQ(values(interpret(after, {x})[0]), values(interpret(before, {x})[0]));
  }
}

TEST(SplitWindows, LeavesStepsAndLinesAlone) {
  for (const Graph& graph : {pool({3, 3}, {1, 1, 1, 1}, {1, 1}, 2), pool({1, 5}, {0, 2, 0, 2}, {1, 1}, 1)})
    EXPECT_TRUE(same_structure(split_windows(graph), graph));
}

}  // namespace
}  // namespace sylvite
