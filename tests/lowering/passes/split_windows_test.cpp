// Pools along one dim after the other.

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::split_windows_test {
namespace {

Graph pool(Op op, const Dims& image, const Attributes& window) {
  Graph graph;
  GraphBuilder builder(graph);
  Dims dims{1, 2};
  dims.insert(dims.end(), image.begin(), image.end());
  builder.output(builder.add(op, {builder.input("x", DType::f32, dims)}, window), "y");
  return graph;
}

Graph pool(const Dims& kernel, const Dims& pads, const Dims& dilations, std::int64_t stride) {
  return pool(
      Op::max_pool, {9, 8},
      {{"kernel", kernel}, {"pads", pads}, {"dilations", dilations}, {"strides", Dims{stride, stride}}});
}

void expect_parts(const Graph& before, int parts) {
  const Graph after = split_windows(before);
  const Op op = before.nodes().back().op;
  EXPECT_EQ(std::ranges::count(after.nodes(), op, &Node::op), parts);
  Tensor x(DType::f32, before.type(before.inputs[0]).dims());
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i * 37 % 101) - 90);
  const std::vector<double> wanted = values(interpret(before, {x})[0]),
                            found = values(interpret(after, {x})[0]);
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-4) << i;
}

TEST(SplitWindows, TheLargestIsTheLargestOfLines) {
  expect_parts(pool({5, 5}, {2, 2, 2, 2}, {1, 1}, 1), 2);
  expect_parts(pool({2, 3}, {0, 1, 1, 0}, {1, 1}, 1), 2);
  expect_parts(pool({3, 2}, {2, 0, 2, 1}, {2, 1}, 1), 2);
}

Graph volume_pool(Op op, std::int64_t extent, std::int64_t stride, std::int64_t counts_padding) {
  Attributes window{{"kernel", Dims(3, extent)},
                    {"pads", Dims(6, extent / 2)},
                    {"dilations", Dims(3, 1)},
                    {"strides", Dims(3, stride)}};
  if (op == Op::avg_pool) window.set("count_include_pad", counts_padding);
  return pool(op, {6, 9, 8}, window);
}

TEST(SplitWindows, OverlappingWindowsOfVolumesLoseTheirFirstDim) {
  expect_parts(volume_pool(Op::max_pool, 3, 2, 0), 2);
  for (const std::int64_t counts_padding : {0, 1})
    for (const std::int64_t stride : {1, 2})
      expect_parts(volume_pool(Op::avg_pool, 3, stride, counts_padding), 2);
  expect_parts(volume_pool(Op::max_pool, 2, 2, 0), 1);
}

TEST(SplitWindows, LeavesStepsAndLinesAlone) {
  for (const Graph& graph : {pool({3, 3}, {1, 1, 1, 1}, {1, 1}, 2), pool({1, 5}, {0, 2, 0, 2}, {1, 1}, 1)})
    EXPECT_TRUE(same_structure(split_windows(graph), graph));
}

}  // namespace
}  // namespace sylvite::split_windows_test
