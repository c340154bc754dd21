#include "lowering/plan/row_fusion.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "lowering/algorithms/problems.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::row_fusion_test {
namespace {

constexpr std::int64_t plane_bytes = 4L * 32 * 12 * 12;

LoweringOptions by_rows(std::int64_t large_bytes = plane_bytes - 1) {
  LoweringOptions options;
  options.large_bytes = large_bytes;
  return options;
}

/// relu(depthwise(relu(conv(x)))) as in MobileNet; `channels` of the input decide the products.
struct Expansion {
  Graph graph;
  ValueId wide = no_value;
  ValueId deep = no_value;

  explicit Expansion(std::int64_t channels = 16, std::int64_t window = 1) {
    const ValueId x = graph.add_input("x", f32({1, channels, 12, 12}));
    wide = graph.add(Op::relu, {conv(graph, x, 32, window)});
    deep = graph.add(Op::relu, {conv(graph, wide, 32, 3, 32)});
    graph.outputs = {deep};
  }
};

std::size_t count_by_rows(const Graph& graph, const LoweringOptions& options) {
  const Plan plan = lower(graph, options);
  return static_cast<std::size_t>(
      std::count_if(plan.kernels.begin(), plan.kernels.end(),
                    [](const Kernel& kernel) { return read_conv_rows(kernel).refusal.empty(); }));
}

TEST(RowFusion, LargeExpansionsAreNotStored) {
  const Expansion expansion;
  expect_lowers_faithfully(expansion.graph);
  EXPECT_EQ(count_by_rows(expansion.graph, by_rows()), 1U);
  EXPECT_EQ(count_by_rows(expansion.graph, by_rows(plane_bytes)), 0U) << "it is not larger";
  EXPECT_EQ(count_by_rows(expansion.graph, {}), 0U);
  const Plan apart = lower(expansion.graph);
  const Plan plan = lower(expansion.graph, by_rows());
  EXPECT_EQ(plan.launches.size() + 1, apart.launches.size());
  EXPECT_THAT(plan.launches, testing::Contains(testing::Field(
                                 &Launch::reason, testing::HasSubstr("reads through conv relu"))));
}

TEST(RowFusion, OnlyTheDepthwiseReads) {
  Expansion expansion;
  expansion.graph.outputs.push_back(expansion.wide);
  EXPECT_EQ(count_by_rows(expansion.graph, by_rows()), 0U) << "it is an output";
  expect_lowers_faithfully(expansion.graph);
  Expansion residual;
  residual.graph.outputs = {residual.graph.add(Op::add, {residual.deep, residual.wide})};
  EXPECT_EQ(count_by_rows(residual.graph, by_rows()), 0U) << "it has another reader";
  expect_lowers_faithfully(residual.graph);
}

TEST(RowFusion, ManyProductsAreStored) {
  EXPECT_EQ(count_by_rows(Expansion(64).graph, by_rows()), 1U);
  EXPECT_EQ(count_by_rows(Expansion(80).graph, by_rows()), 0U);
  EXPECT_EQ(count_by_rows(Expansion(16, 3).graph, by_rows()), 0U);
  EXPECT_EQ(count_by_rows(Expansion(3, 3).graph, by_rows()), 1U) << "a first layer";
}

TEST(RowFusion, WorkBetweenReadsNothingElse) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({1, 16, 12, 12}));
  const ValueId wide =
      graph.add(Op::mul, {conv(graph, x, 32, 1), graph.add_input("y", f32({1, 32, 12, 12}))});
  graph.outputs = {conv(graph, wide, 32, 3, 32)};
  EXPECT_EQ(count_by_rows(graph, by_rows()), 0U);
  expect_lowers_faithfully(graph);
}

TEST(RowFusion, SqueezeAndExciteReadsTheDepthwiseResult) {
  EXPECT_EQ(count_by_rows(residual_network(), by_rows(1)), 1U);
}

/// Sums over `axis` of rows that are gathered, times a weight for each.
Graph bag(std::int64_t axis, bool keeps_rows) {
  Graph graph;
  const ValueId table = graph.add_input("table", f32({40, 24}));
  const ValueId places = graph.add_input("places", make_type(DType::i64, {6, 5}));
  const ValueId rows = graph.add(Op::gather, {table, places}, {{"axis", std::int64_t{0}}});
  const ValueId weighted = graph.add(Op::mul, {rows, graph.add_input("weights", f32({6, 5, 1}))});
  graph.outputs = {
      graph.add(Op::reduce_sum, {weighted}, {{"axes", Dims{axis}}, {"keepdims", std::int64_t{0}}})};
  if (keeps_rows) graph.outputs.push_back(rows);
  return graph;
}

TEST(RowFusion, GatheredRowsAreFoldedWhereTheyLie) {
  const Plan plan = lower(bag(1, false));
  EXPECT_EQ(plan.launches.size(), 1U);
  EXPECT_THAT(plan.launches[0].reason, testing::HasSubstr("reads through gather mul"));
  EXPECT_EQ(lower(bag(2, false)).launches.size(), 2U) << "elements of a row are added";
  EXPECT_EQ(lower(bag(1, true)).launches.size(), 2U) << "the rows are an output";
  for (const bool keeps_rows : {false, true}) expect_lowers_faithfully(bag(1, keeps_rows));
}

}  // namespace
}  // namespace sylvite::row_fusion_test
