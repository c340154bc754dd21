#include "lowering/plan/row_folds.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "frontend/ops/op_table.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::row_folds_test {
namespace {

/// A device whose template takes kernels with so many folds.
LoweringOptions with_template_for(int folds) {
  LoweringOptions options;
  options.refuse_template = [folds](const Kernel& kernel) -> std::string {
    const auto found = std::ranges::count_if(
        kernel.body.nodes(), [](const Node& node) { return has_trait(node.op, OpTrait::reduction); });
    return found <= folds ? "" : "many folds";
  };
  return options;
}

class RowFolds : public testing::Test {
 protected:
  ValueId sum(ValueId id, std::int64_t axis) {
    return graph.add(Op::reduce_sum, {id}, {{"axes", Dims{axis}}, {"keepdims", std::int64_t{1}}});
  }
  ValueId mul(ValueId a, ValueId b) { return graph.add(Op::mul, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return graph.add(Op::sub, {a, b}); }
  ValueId loss_of(ValueId rows) {
    const ValueId most =
        graph.add(Op::reduce_max, {rows}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{1}}});
    const ValueId powers = sum(graph.add(Op::exp, {sub(rows, most)}), 1);
    const ValueId places = graph.add_input("places", make_type(DType::i64, {6000, 1}));
    const ValueId picked = graph.add(Op::gather_elements, {rows, places}, {{"axis", std::int64_t{1}}});
    return sub(sub(picked, most), graph.add(Op::log, {powers}));
  }
  [[nodiscard]] std::size_t launches(const LoweringOptions& options) const {
    return lower(graph, options).launches.size();
  }

  Graph graph;
  ValueId d = graph.add_input("d", f32({6, 50}));
  ValueId x = graph.add_input("x", f32({6, 50}));
};

/// The gradient of a norm of rows.
TEST_F(RowFolds, AGradientOfRowsIsOneKernel) {
  graph.outputs = {sub(sub(d, sum(d, 1)), mul(x, sum(mul(d, x), 1)))};
  EXPECT_EQ(launches(with_template_for(2)), 1U);
  EXPECT_EQ(launches(with_template_for(1)), 3U);
  EXPECT_EQ(launches({}), 3U);
  expect_faithful(graph, lower(graph, with_template_for(2)), 1e-4);
}

TEST_F(RowFolds, SumsThatOthersReadAreResultsToo) {
  const ValueId sums = sum(mul(d, x), 1), kept = sub(x, sums);
  graph.outputs = {mul(kept, sums), sums};
  EXPECT_EQ(launches(with_template_for(2)), 1U);
  expect_faithful(graph, lower(graph, with_template_for(2)), 1e-4);
}

/// Work that several groups do reads the sum in each of them.
TEST_F(RowFolds, SumsAreResultsWhereTheirReadersAreRepeated) {
  const ValueId centered = sub(x, sum(x, 1));
  graph.outputs = {mul(centered, d), sum(mul(centered, centered), 0)};
  expect_faithful(graph, lower(graph, with_template_for(2)), 1e-4);
}

TEST_F(RowFolds, SumsThatAreReadOnTheWayStayApart) {
  const ValueId sums = sum(mul(d, x), 1);
  const ValueId product = graph.add(Op::softmax, {mul(d, sums)}, {{"axis", std::int64_t{0}}});
  graph.outputs = {product, mul(x, sums)};
  EXPECT_EQ(launches(with_template_for(2)), 3U);
}

TEST_F(RowFolds, SumsOfColumnsAreTakenToo) {
  graph.outputs = {mul(x, sum(mul(d, x), 0))};
  EXPECT_EQ(launches(with_template_for(1)), 1U);
  expect_faithful(graph, lower(graph, with_template_for(1)), 1e-4);
  EXPECT_EQ(launches({}), 2U);
}

/// What the gradient of a loss reads again.
TEST_F(RowFolds, SumsOfWhatOtherFoldsMadeAreOneKernelWithThem) {
  const ValueId most = graph.add(Op::reduce_max, {d}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{1}}});
  graph.outputs = {graph.add(Op::log, {sum(graph.add(Op::exp, {sub(d, most)}), 1)}), most};
  EXPECT_EQ(launches(with_template_for(2)), 1U);
  EXPECT_EQ(launches(with_template_for(1)), 2U);
  expect_faithful(graph, lower(graph, with_template_for(2)), 1e-4);
}

/// As a loss does, which takes one element of each row: the rows are many, and read once.
TEST_F(RowFolds, AFoldJoinsWhatOthersReadOnTheWay) {
  graph.outputs = {loss_of(graph.add_input("rows", f32({6000, 800})))};
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(2)), testing::ElementsAre(2, 1, 1));
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(1)), testing::ElementsAre(1, 1, 1));
}

/// What a fold reads is looked for no further than where it is made: beyond are as many ways as there are subsets of layers.
TEST_F(RowFolds, LayersAheadOfAFoldAreNotWalked) {
  ValueId rows = graph.add_input("rows", f32({6000, 800}));
  for (int layer = 0; layer < 60; ++layer)
    rows = graph.add(Op::softmax, {mul(rows, sum(rows, 0))}, {{"axis", std::int64_t{0}}});
  graph.outputs = {loss_of(rows)};
  EXPECT_EQ(launches(with_template_for(2)), 60U * 2 + 3);
}

/// Work on the rows takes all of them before.
TEST_F(RowFolds, WorkTakesSumsOfSums) {
  const ValueId most = graph.add(Op::reduce_max, {d}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{1}}});
  const ValueId powers = graph.add(Op::exp, {sub(d, most)});
  graph.outputs = {graph.add(Op::div, {powers, sum(powers, 1)})};
  EXPECT_EQ(launches(with_template_for(2)), 1U);
  expect_faithful(graph, lower(graph, with_template_for(2)), 1e-4);
}

/// What each of a chain folds is large, and another's: taken together all of it would stay in memory.
TEST_F(RowFolds, AChainOfFoldsOfOtherRowsIsNoKernel) {
  ValueId total = no_value;
  for (int i = 0; i < 6; ++i) {
    const ValueId rows = graph.add_input(fmt::format("rows{}", i), f32({640, 512}));
    const ValueId most =
        graph.add(Op::reduce_max, {rows}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{1}}});
    total = total == no_value ? most : graph.add(Op::add, {total, most});
  }
  graph.outputs = {total};
  EXPECT_GE(launches(with_template_for(8)), 3U);
}

}  // namespace
}  // namespace sylvite::row_folds_test
