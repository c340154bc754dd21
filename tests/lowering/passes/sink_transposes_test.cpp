#include <gmock/gmock.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "frontend/passes/store_narrow.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::sink_transposes_test {
namespace {

/// Half of the launches of ConvNeXt's blocks would only move.
std::size_t movements(const Plan& plan) {
  return static_cast<std::size_t>(std::ranges::count_if(plan.launches, [&](const Launch& launch) {
    return plan.kernels[static_cast<std::size_t>(launch.kernel)].kind == KernelClass::movement;
  }));
}

TEST(SinkTransposes, BlocksBetweenDepthwiseConvolutionsMoveNothing) {
  const Graph graph = store_narrow(metaformer_blocks(), DType::bf16);
  const Plan plan = lower(graph, channels_last());
  EXPECT_LE(movements(plan), 2U) << plan_text(plan);  // the input and the output of the graph
  expect_faithful(graph, plan);
  PassOptions options;
  options.disabled.insert("sink_transposes");
  const std::vector<std::string_view> known = {"sink_transposes"};
  PassRunner runner(options, known);
  const Plan moved = lower(graph, channels_last(), runner);
  EXPECT_GT(moved.launches.size(), plan.launches.size());
  expect_faithful(graph, moved);
}

TEST(SinkTransposes, OperandsThatWouldMoveAreLeftAlone) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 6, 5, 8}));
  const ValueId dense = graph.add_input("dense", make_type(DType::bf16, {2, 8, 6, 5}));
  graph.outputs = {graph.add(Op::add, {transpose(graph, x, {0, 3, 1, 2}), dense})};
  EXPECT_TRUE(same_structure(sink_transposes(graph, false), graph));
}

/// A cast of each would be a kernel, since what a transpose reads is in memory.
TEST(SinkTransposes, InputsAreTransposedAheadOfWork) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 6, 5, 8}));
  const ValueId wide = add_cast(graph, transpose(graph, x, {0, 3, 1, 2}), DType::f32);
  graph.outputs = {graph.add(Op::relu, {wide})};
  EXPECT_TRUE(same_structure(sink_transposes(graph, true), graph));
}

TEST(SinkTransposes, FloatsNeedTf32) {
  Graph graph;
  const ValueId x = graph.add(Op::neg, {graph.add_input("x", f32({2, 6, 5, 8}))});
  graph.outputs = {graph.add(Op::relu, {transpose(graph, x, {0, 3, 1, 2})})};
  EXPECT_TRUE(same_structure(sink_transposes(graph, false), graph));
  EXPECT_FALSE(same_structure(sink_transposes(graph, true), graph));
}

}  // namespace
}  // namespace sylvite::sink_transposes_test
