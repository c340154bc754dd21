#include "lowering/plan/template_keeper.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "frontend/ops/op_table.h"
#include "lowering/plan/fusion.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::template_keeper_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A device whose template takes what no operation of `refused` is in.
LoweringOptions without_templates_for(const std::vector<Op>& refused) {
  LoweringOptions options;
  options.refuse_template = [refused](const Kernel& kernel) -> std::string {
    for (const Node& node : kernel.body.nodes())
      if (std::ranges::find(refused, node.op) != refused.end())
        return "no " + std::string(op_info(node.op).name) + " here";
    return "";
  };
  return options;
}

std::vector<std::string> groups_of(const Graph& graph, const LoweringOptions& options) {
  std::vector<std::string> result;
  for (const Group& group : group_nodes(graph, no_joins(graph), options)) {
    std::string text;
    for (NodeId id : group.nodes)
      text += (text.empty() ? "" : " ") + std::string(op_info(graph.node(id).op).name);
    result.push_back(text);
  }
  return result;
}

class KeptTemplates : public testing::Test {
 protected:
  ValueId unary(Op op, ValueId id) { return graph.add(op, {id}); }
  ValueId product(ValueId a) { return graph.add(Op::matmul, {a, weight(graph, {16, 16})}); }

  Graph graph;
  ValueId x = graph.add_input("x", f32({16, 16}));
  ValueId y = graph.add_input("y", f32({16, 16}));
};

TEST_F(KeptTemplates, EpiloguesEndAheadOfWhatNoneTakes) {
  graph.outputs = {unary(Op::exp, unary(Op::tanh, unary(Op::relu, product(x))))};
  EXPECT_THAT(groups_of(graph, {}), ElementsAre("matmul relu tanh exp"));
  const LoweringOptions options = without_templates_for({Op::tanh});
  EXPECT_THAT(groups_of(graph, options), ElementsAre("matmul relu", "tanh exp"));
  EXPECT_THAT(group_nodes(graph, no_joins(graph), options).at(0).reason,
              HasSubstr("without tanh, with which no template takes it: no tanh here"));
}

TEST_F(KeptTemplates, OperandsAreComputedAhead) {
  graph.outputs = {product(transpose(graph, x, {1, 0}))};
  EXPECT_THAT(groups_of(graph, without_templates_for({Op::exp})), ElementsAre("transpose matmul"));
  const LoweringOptions options = without_templates_for({Op::transpose});
  EXPECT_THAT(groups_of(graph, options), ElementsAre("transpose", "matmul"));
  EXPECT_THAT(group_nodes(graph, no_joins(graph), options).at(1).reason, HasSubstr("no transpose here"));
}

TEST_F(KeptTemplates, WhatNormsOfShortRowsReadIsComputedAhead) {
  const auto norm_of = [](std::int64_t columns) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({16, columns}));
    graph.outputs = {graph.add(Op::softmax, {graph.add(Op::neg, {x})}, {{"axis", std::int64_t{1}}})};
    return graph;
  };
  const LoweringOptions options = without_templates_for({Op::neg});
  EXPECT_THAT(groups_of(norm_of(49), options), ElementsAre("neg", "softmax"));
  EXPECT_THAT(groups_of(norm_of(64), options), ElementsAre("neg softmax"));  // a space takes it
  EXPECT_THAT(groups_of(norm_of(9), options), ElementsAre("neg softmax"));   // a thread
}

TEST_F(KeptTemplates, WhatEpiloguesReadIsComputedAhead) {
  graph.outputs = {graph.add(Op::add, {product(x), unary(Op::exp, y)})};
  EXPECT_THAT(groups_of(graph, without_templates_for({Op::neg})), ElementsAre("matmul exp add"));
  EXPECT_THAT(groups_of(graph, without_templates_for({Op::exp})), ElementsAre("exp", "matmul add"));
}

TEST_F(KeptTemplates, ProductsThatHaveNoneFuseByTheRules) {
  graph.outputs = {unary(Op::tanh, product(transpose(graph, x, {1, 0})))};
  EXPECT_THAT(groups_of(graph, without_templates_for({Op::matmul})), ElementsAre("transpose matmul tanh"));
}

TEST_F(KeptTemplates, ReductionsAreNotAskedAbout) {
  const Attributes rows = {{"axes", Dims{1}}, {"keepdims", std::int64_t{0}}};
  graph.outputs = {graph.add(Op::reduce_sum, {unary(Op::neg, x)}, rows)};
  EXPECT_THAT(groups_of(graph, without_templates_for({Op::neg})), ElementsAre("neg reduce_sum"));
}

/// Of much; what is little is read sooner than another kernel starts.
TEST_F(KeptTemplates, FoldsWhoseResultIsTurnedAreAskedAbout) {
  LoweringOptions options = without_templates_for({Op::to_layout});
  options.image_layout = ImageLayout::channels_last;
  for (const std::int64_t lines : {8, 512}) {
    Graph folded;
    TensorType type = f32({4, 16, lines, 64});
    type.layout.channel_block = 16;
    const ValueId sum = folded.add(Op::reduce_sum, {folded.add_input("x", type)},
                                   {{"axes", Dims{3}}, {"keepdims", std::int64_t{1}}});
    folded.value(sum).type.layout.channel_block = 16;
    folded.outputs = {folded.add(Op::to_layout, {sum}, {{"block", std::int64_t{0}}})};
    if (lines == 8)
      EXPECT_THAT(groups_of(folded, options), ElementsAre("reduce_sum to_layout"));
    else
      EXPECT_THAT(groups_of(folded, options), ElementsAre("reduce_sum", "to_layout"));
  }
}

/// Nothing but a template gives a column more than one thread that reads it three times.
TEST_F(KeptTemplates, SoftmaxAlongColumnsIsAskedAbout) {
  const auto groups = [&](std::int64_t axis) {
    Graph of;
    const ValueId turned = of.add(Op::neg, {of.add_input("x", f32({16, 128}))});
    of.outputs = {of.add(Op::log_softmax, {turned}, {{"axis", axis}})};
    return groups_of(of, without_templates_for({Op::neg}));
  };
  EXPECT_THAT(groups(0), ElementsAre("neg", "log_softmax"));
  EXPECT_THAT(groups(1), ElementsAre("neg log_softmax"));
}

/// Large ones alone, and not behind work on what is turned itself.
TEST_F(KeptTemplates, TransposesTakeWorkThatTheirTemplateTakes) {
  const auto groups = [&](std::int64_t rows, bool is_turned) {
    Graph of;
    const ValueId a = of.add_input("a", f32({rows, 1024}));
    ValueId b = of.add_input("b", f32(is_turned ? Dims{1024, rows} : Dims{rows, 1024}));
    if (is_turned) b = transpose(of, b, {1, 0});
    of.outputs = {transpose(of, of.add(Op::neg, {of.add(Op::mul, {a, b})}), {1, 0})};
    return groups_of(of, without_templates_for({Op::mul}));
  };
  EXPECT_THAT(groups(2048, false), ElementsAre("mul", "neg transpose"));
  EXPECT_THAT(groups(512, false), ElementsAre("mul neg transpose"));
  EXPECT_THAT(groups(2048, true), ElementsAre("transpose mul neg transpose"));
}

TEST_F(KeptTemplates, ScattersReadIndicesThatAreRepeated) {
  const auto groups = [&](const std::vector<Op>& refused) {
    Graph of;
    const ValueId i = of.add_input("i", make_type(DType::i64, {40, 1}));
    const ValueId each = of.add(Op::broadcast_to, {i}, {{"shape", Dims{40, 16}}});
    of.outputs = {of.add(Op::scatter_elements,
                         {of.add_input("x", f32({16, 16})), each, of.add_input("u", f32({40, 16}))},
                         {{"axis", std::int64_t{0}}, {"reduction", std::string("add")}})};
    return groups_of(of, without_templates_for(refused));
  };
  EXPECT_THAT(groups({}), ElementsAre("broadcast_to scatter_elements"));
  EXPECT_THAT(groups({Op::broadcast_to}), ElementsAre("broadcast_to", "scatter_elements"));
}

/// The template reads floats: a comparison must be computed inside with what chooses by it.
TEST_F(KeptTemplates, EpiloguesMayFitOnlyWithWhatTheyRead) {
  LoweringOptions options;
  options.refuse_template = [](const Kernel& kernel) -> std::string {
    for (const ValueId input : kernel.body.inputs)
      if (kernel.body.type(input).dtype == DType::boolean) return "it reads a truth value";
    const NodeId ahead = kernel.body.value(kernel.body.node(kernel.anchor).inputs[0]).producer;
    return ahead == no_node ? "" : "an operand is computed";
  };
  const ValueId positive = graph.add(Op::less, {scalar(graph, 0), y});
  const ValueId turned = transpose(graph, x, {1, 0});
  graph.outputs = {graph.add(Op::where, {positive, product(turned), y})};
  EXPECT_THAT(groups_of(graph, options), ElementsAre("transpose", "less matmul where"));
}

/// What is read of memory is as little as may be: one narrow result instead of two wide ones.
TEST_F(KeptTemplates, WorkBesideAnEpilogueThatStopsStaysWhole) {
  const ValueId sum = graph.add(Op::add, {unary(Op::exp, x), unary(Op::tanh, y)});
  const ValueId narrow = graph.add(Op::cast, {sum}, {{"to", std::string("bf16")}});
  const ValueId wide = graph.add(Op::cast, {narrow}, {{"to", std::string("f32")}});
  graph.outputs = {graph.add(Op::add, {product(x), wide})};
  EXPECT_THAT(groups_of(graph, without_templates_for({Op::tanh, Op::exp})),
              ElementsAre("exp tanh add cast", "cast matmul add"));
}

/// A GPU reads less where each reader makes a wide value of narrow ones.
TEST_F(KeptTemplates, WideWorkOnNarrowValuesIsRepeated) {
  const auto groups = [&](bool is_narrow) {
    Graph of;
    const auto input = [&](const char* name) {
      const ValueId id = of.add_input(name, make_type(is_narrow ? DType::bf16 : DType::f32, {8, 16}));
      return of.add(Op::cast, {id}, {{"to", std::string("f32")}});
    };
    const ValueId power = of.add(Op::exp, {of.add(Op::mul, {input("a"), input("b")})});
    for (const std::int64_t axis : {0, 1})
      of.outputs.push_back(
          of.add(Op::reduce_sum, {power}, {{"axes", Dims{axis}}, {"keepdims", std::int64_t{0}}}));
    return groups_of(of, without_templates_for({Op::matmul}));
  };
  EXPECT_EQ(groups(true).size(), 2U);
  EXPECT_EQ(groups(false).size(), 3U);
}

}  // namespace
}  // namespace sylvite::template_keeper_test
