#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/store_narrow.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::turn_norms_test {
namespace {

TEST(TurnNorms, SoftmaxOverChannelsIsOfRows) {
  for (const Op op : {Op::softmax, Op::log_softmax}) {
    Graph graph;
    const ValueId image = conv(graph, graph.add_input("x", f32({2, 16, 6, 5})), 24, 3);
    graph.outputs = {conv(graph, graph.add(op, {image}, {{"axis", std::int64_t{1}}}), 8, 1)};
    const Graph narrow = store_narrow(graph, DType::bf16), turned = turn_norms(narrow, false);
    const auto found = std::ranges::find(turned.nodes(), op, &Node::op);
    ASSERT_NE(found, turned.nodes().end());
    EXPECT_EQ(found->attributes.integer("axis"), 3);
    const Plan plan = lower(narrow, channels_last());
    expect_faithful(narrow, plan);
    for (const Kernel& kernel : plan.kernels)
      if (kernel.kind == KernelClass::normalization) EXPECT_EQ(kernel.body.nodes()[0].op, op);
  }
}

struct Spelling {
  bool is_centered = false, divides = false, is_turned = false;
};

/// x / sqrt(mean(x^2) + epsilon) over channels, x less its mean there if it is centered, then a scale and another convolution.
Graph normed_channels(const Spelling& spelling, std::int64_t axis = 1) {
  Graph graph;
  ValueId x =
      spelling.is_turned
          ? transpose(graph, dense(graph, graph.add_input("x", f32({2, 6, 24, 16})), 24), {0, 3, 1, 2})
          : conv(graph, graph.add_input("x", f32({2, 16, 6, 24})), 24, 3);
  const ValueId one_over = scalar(graph, 1.0F / 24);
  const Attributes over = {{"axes", Dims{axis}}, {"keepdims", std::int64_t{1}}};
  const auto mean = [&](ValueId of) {
    return graph.add(Op::mul, {graph.add(Op::reduce_sum, {of}, over), one_over});
  };
  if (spelling.is_centered) x = graph.add(Op::sub, {x, mean(x)});
  const ValueId sum = graph.add(Op::add, {mean(graph.add(Op::mul, {x, x})), scalar(graph, 1e-5F)});
  const ValueId normed = spelling.divides ? graph.add(Op::div, {x, graph.add(Op::sqrt, {sum})})
                                          : graph.add(Op::mul, {x, graph.add(Op::rsqrt, {sum})});
  const ValueId scaled = graph.add(Op::mul, {normed, weight(graph, {1, 24, 1, 1})});
  graph.outputs = {conv(graph, graph.add(Op::relu, {scaled}), 8, 1)};
  return graph;
}

TEST(TurnNorms, NormsOverChannelsAreOfRows) {
  for (int bits = 0; bits < 8; ++bits) {
    const Spelling spelling{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    const Graph graph = normed_channels(spelling);
    const Op op = spelling.is_centered ? Op::layer_norm : Op::rms_norm;
    const Graph turned = turn_norms(graph, true);
    ASSERT_NE(std::ranges::find(turned.nodes(), op, &Node::op), turned.nodes().end());
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(turned, inputs).at(0), interpret(graph, inputs).at(0));
    for (const bool keep_wide : {false, true}) {
      const Graph narrow = store_narrow(graph, DType::bf16, {.keep_wide = keep_wide});
      const Plan plan = lower(narrow, channels_last());
      EXPECT_EQ(std::ranges::count(plan.kernels, KernelClass::normalization,
                                   [](const Kernel& k) { return k.kind; }),
                1)
          << plan_text(plan);
      EXPECT_EQ(
          std::ranges::count(plan.kernels, KernelClass::reduction, [](const Kernel& k) { return k.kind; }),
          0);
    }
  }
}

TEST(TurnNorms, NormsOfLinesStay) {
  const Graph graph = normed_channels({}, 3);
  EXPECT_TRUE(same_structure(turn_norms(graph, true), graph));
}

TEST(TurnNorms, SoftmaxOfOuterDimsIsOfRows) {
  for (std::int64_t axis = 0; axis < 3; ++axis) {
    Graph graph;
    const ValueId x = graph.add_input("x", make_type(DType::bf16, {4, 16, 24}));
    graph.outputs = {graph.add(Op::softmax, {x}, {{"axis", axis}})};
    const Graph turned = turn_norms(graph, false);
    const auto found = std::ranges::find(turned.nodes(), Op::softmax, &Node::op);
    EXPECT_EQ(found->attributes.integer("axis"), 2) << axis;
    EXPECT_EQ(turned.type(turned.outputs[0]), graph.type(graph.outputs[0])) << axis;
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(turned, inputs).at(0), interpret(graph, inputs).at(0));
    expect_faithful(graph, lower(graph, channels_last()));
  }
}

TEST(TurnNorms, RowsAndShortColumnsStay) {
  for (const std::int64_t axis : {1, 3}) {
    Graph graph;
    const ValueId x = graph.add_input("x", make_type(DType::bf16, {4, 16, 64, 64}));
    graph.outputs = {graph.add(Op::softmax, {x}, {{"axis", axis}})};
    EXPECT_TRUE(same_structure(turn_norms(graph, false), graph));
  }
}

}  // namespace
}  // namespace sylvite::turn_norms_test
