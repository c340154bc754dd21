#include "lowering/plan/twin_folds.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/plan_interpreter.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::twin_folds_test {
namespace {

using testing::ElementsAre;

bool has_row(const Kernel& kernel) {
  const Graph& body = kernel.body;
  return body.node(kernel.anchor).inputs.size() == 1 &&
         body.type(body.outputs[0]).dims() == body.type(body.node(kernel.anchor).inputs[0]).dims();
}

/// A device whose template makes the results of so many folds at once, and nothing of the size that is folded.
LoweringOptions with_template_for(int folds) {
  LoweringOptions options;
  options.image_layout = ImageLayout::dense;
  options.refuse_template = [folds](const Kernel& kernel) -> std::string {
    const auto found = std::ranges::count_if(
        kernel.body.nodes(), [](const Node& node) { return has_trait(node.op, OpTrait::reduction); });
    return found > folds ? "many folds" : found > 0 && has_row(kernel) ? "it writes all elements" : "";
  };
  return options;
}

class TwinFolds : public testing::Test {
 protected:
  ValueId sum(ValueId id, const Dims& axes) {
    return graph.add(Op::reduce_sum, {id}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
  }
  ValueId mul(ValueId a, ValueId b) { return graph.add(Op::mul, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return graph.add(Op::sub, {a, b}); }

  Graph graph;
  ValueId d = graph.add_input("d", f32({600, 500}));
  ValueId x = graph.add_input("x", f32({600, 500}));
  ValueId mean = graph.add_input("mean", f32({1, 500}));
};

TEST_F(TwinFolds, SeveralOperationsOnOneValueAreOneKernel) {
  const Attributes rows = {{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{1}}};
  graph.outputs = {sum(x, {1}), graph.add(Op::arg_min, {x}, rows),
                   graph.add(Op::reduce_max, {x}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{0}}}),
                   graph.add(Op::arg_max, {x}, rows), sum(x, {0})};
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(4)), ElementsAre(4, 1));
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(3)), ElementsAre(3, 1, 1));
}

/// The gradient of a normalisation over columns; what the first sum makes stands before the second in the graph.
TEST_F(TwinFolds, SumsOfAGradientAreOneKernel) {
  const ValueId shift = sum(d, {0});
  const ValueId half = graph.add(Op::exp, {shift});
  const ValueId scale = sum(mul(d, sub(x, mean)), {0});
  graph.outputs = {sub(mul(d, half), mul(x, scale)), shift};
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(2)), ElementsAre(3, 1));
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(1)), ElementsAre(2, 1, 1));
  EXPECT_THAT(outputs_of_launches(graph, {}), ElementsAre(1, 1, 1, 1));
  std::vector<Tensor> inputs;
  inputs.reserve(graph.inputs.size());
  for (const ValueId id : graph.inputs)
    inputs.push_back(random_tensor(graph.type(id).dims(), static_cast<std::uint32_t>(id), 0.1));
  const std::vector<Tensor> wanted = interpret(graph, inputs),
                            got = interpret_plan(lower(graph, with_template_for(2)), inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::int64_t e = 0; e < wanted[i].size(); ++e)
      ASSERT_NEAR(got[i].as_double(e), wanted[i].as_double(e), 1e-4);
}

TEST_F(TwinFolds, WhatReadsTheOtherIsMadeBehindIt) {
  const ValueId first = sum(x, {0});
  const ValueId apart = sub(x, first);
  graph.outputs = {sum(mul(apart, apart), {0}), first};
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(2)), ElementsAre(2));
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(1)), ElementsAre(1, 1));
}

TEST_F(TwinFolds, LargeFoldsOfDifferentValuesOrDimsStayApart) {
  graph.outputs = {sum(d, {0}), sum(x, {0})};
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(2)), ElementsAre(1, 1));
  graph.outputs = {sum(d, {0}), sum(mul(d, x), {1})};
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(2)), ElementsAre(1, 1));
}

TEST_F(TwinFolds, SmallFoldsAreOneLaunch) {
  const ValueId a = graph.add_input("a", f32({64, 100})), b = graph.add_input("b", f32({64, 100}));
  graph.outputs = {sum(a, {0}), sum(b, {0})};
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(2)), ElementsAre(2));
}

/// As deviations beside means that others need without the folded dim.
TEST_F(TwinFolds, ASumThatTookAnotherMayHaveTwins) {
  const ValueId a = graph.add_input("a", f32({64, 100}));
  const ValueId apart = sub(a, sum(a, {0}));
  const ValueId mean = graph.add(Op::reduce_sum, {a}, {{"axes", Dims{0}}, {"keepdims", std::int64_t{0}}});
  graph.outputs = {mean, sum(mul(apart, apart), {0})};
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(3)), ElementsAre(2));
  EXPECT_THAT(outputs_of_launches(graph, with_template_for(2)), ElementsAre(1, 1));
}

/// As the variance of a norm, whose last steps need the mean: both sums are of one kernel, with the steps where these are left the
/// dims that were folded.
TEST_F(TwinFolds, WorkBehindTheSecondMayReadTheFirst) {
  for (const std::int64_t rows : {64, 65536}) {
    Graph norm;
    const ValueId given = norm.add_input("given", f32({rows, 128}));
    const auto fold = [&](ValueId id) {
      return norm.add(Op::reduce_sum, {id}, {{"axes", Dims{0}}, {"keepdims", std::int64_t{1}}});
    };
    const ValueId first = norm.add(Op::mul, {fold(given), scalar(norm, 0.5)});
    const ValueId second = fold(norm.add(Op::mul, {given, given}));
    norm.outputs = {norm.add(Op::sub, {second, norm.add(Op::mul, {first, first})}), first};
    EXPECT_THAT(outputs_of_launches(norm, with_template_for(2)), ElementsAre(2));
    const std::vector<Tensor> inputs = {random_tensor(norm.type(norm.inputs[0]).dims(), 3, 0.1)};
    const std::vector<Tensor> wanted = interpret(norm, inputs),
                              got = interpret_plan(lower(norm, with_template_for(2)), inputs);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      for (std::int64_t e = 0; e < wanted[i].size(); ++e)
        ASSERT_NEAR(got[i].as_double(e), wanted[i].as_double(e), 1e-2);
  }
}

}  // namespace
}  // namespace sylvite::twin_folds_test
