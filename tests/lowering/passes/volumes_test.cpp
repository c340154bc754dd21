// Volumes, [image, channel, frame, line, column], with their channels innermost: each pass beside what it leaves as it was.

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/store_narrow.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::volumes_test {
namespace {

ValueId conv3d(Graph& graph, ValueId x, std::int64_t filters, std::int64_t taps, std::int64_t stride = 1,
               std::int64_t groups = 1) {
  const std::int64_t channels = graph.type(x).dims()[1];
  return graph.add(
      Op::conv,
      {x, weight(graph, {filters, channels / groups, taps, taps, taps}), weight(graph, {filters}, 2)},
      {{"strides", Dims(3, stride)},
       {"pads", Dims(6, taps == stride ? 0 : taps / 2)},
       {"dilations", Dims(3, 1)},
       {"groups", groups}});
}

/// Instance normalisation, a convolution, pooling, and a concat, as U-Nets of volumes have them.
Graph volume_net(std::int64_t channels) {
  Graph graph;
  const ValueId first = conv3d(graph, graph.add_input("x", f32({2, channels, 4, 5, 6})), 8, 3);
  const ValueId norm = graph.add(Op::layer_norm, {first}, {{"axis", std::int64_t{2}}, {"epsilon", 1e-5}});
  const ValueId scaled = graph.add(Op::mul, {norm, weight(graph, {1, 8, 1, 1, 1}, 5)});
  const ValueId deep = conv3d(graph, graph.add(Op::relu, {scaled}), 8, 3, 1, 8);
  const ValueId both = graph.add(Op::concat, {deep, scaled}, {{"axis", std::int64_t{1}}});
  const ValueId pooled = graph.add(Op::max_pool, {conv3d(graph, both, 16, 1)},
                                   {{"kernel", Dims{2, 2, 2}},
                                    {"strides", Dims{2, 2, 2}},
                                    {"dilations", Dims{1, 1, 1}},
                                    {"pads", Dims(6, 0)}});
  const ValueId mean = graph.add(Op::reduce_sum, {conv3d(graph, pooled, 12, 3)},
                                 {{"axes", Dims{2, 3, 4}}, {"keepdims", std::int64_t{1}}});
  graph.outputs = {pooled, mean};
  return graph;
}

TEST(Volumes, LieWithTheirChannelsInnermost) {
  for (const std::int64_t channels : {1, 3, 8}) {
    const Graph graph = store_narrow(volume_net(channels), DType::bf16);
    const Plan plan = lower(graph, channels_last());
    for (const Kernel& kernel : plan.kernels) {
      if (kernel.kind != KernelClass::convolution && kernel.kind != KernelClass::pooling) continue;
      for (const ValueId id : {kernel.body.node(kernel.anchor).inputs[0], kernel.body.outputs[0]}) {
        const TensorType& type = kernel.body.type(id);
        EXPECT_EQ(type.layout.channel_block, type.dims()[1]) << plan_text(plan);
      }
    }
    EXPECT_TRUE(std::ranges::none_of(plan.kernels, [](const Kernel& kernel) {
      return std::ranges::any_of(kernel.body.nodes(), [](const Node& node) {
        return node.op == Op::transpose || node.op == Op::layer_norm;
      });
    })) << plan_text(plan);
    expect_faithful(graph, plan);
  }
}

TEST(Volumes, KeepTheirResultsInEveryLayout) {
  for (const std::int64_t channels : {3, 8}) expect_lowers_faithfully(volume_net(channels));
}

/// The channels of a transposed convolution with strides are places of pixels: volumes are shuffled.
TEST(Volumes, ShufflesKeepTheirResults) {
  Graph graph;
  const ValueId x = conv3d(graph, graph.add_input("x", f32({2, 8, 2, 3, 4})), 32, 1);
  const ValueId cut = graph.add(Op::reshape, {x}, {{"shape", Dims{2, 4, 2, 2, 2, 2, 3, 4}}});
  const ValueId moved = transpose(graph, cut, {0, 1, 5, 2, 6, 3, 7, 4});
  const ValueId wide = graph.add(Op::reshape, {moved}, {{"shape", Dims{2, 4, 4, 6, 8}}});
  graph.outputs = {conv3d(graph, graph.add(Op::relu, {wide}), 8, 3)};
  expect_lowers_faithfully(graph);
  const Graph narrow = store_narrow(graph, DType::bf16);
  expect_faithful(narrow, lower(narrow, channels_last()));
}

TEST(Volumes, ShuffledOnesAreJoinedWhereTheyLie) {
  Graph graph;
  const ValueId x = conv3d(graph, graph.add_input("x", f32({2, 8, 4, 4, 6})), 8, 3);
  const ValueId deep = conv3d(graph, conv3d(graph, x, 16, 2, 2), 64, 1);
  const ValueId cut = graph.add(Op::reshape, {deep}, {{"shape", Dims{2, 2, 2, 2, 8, 2, 2, 3}}});
  const ValueId wide = graph.add(Op::reshape, {transpose(graph, cut, {0, 4, 5, 1, 6, 2, 7, 3})},
                                 {{"shape", Dims{2, 8, 4, 4, 6}}});
  const ValueId both = graph.add(Op::concat, {wide, x}, {{"axis", std::int64_t{1}}});
  graph.outputs = {conv3d(graph, both, 8, 3)};
  const Graph narrow = store_narrow(graph, DType::bf16);
  const Plan plan = lower(narrow, channels_last());
  EXPECT_EQ(std::ranges::count_if(plan.kernels,
                                  [](const Kernel& kernel) {
                                    return std::ranges::any_of(kernel.body.nodes(), [](const Node& node) {
                                      return node.op == Op::to_layout;
                                    });
                                  }),
            2)
      << "the input and the output\n"
      << plan_text(plan);
  expect_faithful(narrow, plan);
}

TEST(Volumes, PatchesAreMatmuls) {
  Graph graph;
  graph.outputs = {conv3d(graph, graph.add_input("x", f32({2, 3, 4, 6, 8})), 5, 2, 2)};
  const Graph changed = multiply_patches(graph, {});
  EXPECT_TRUE(std::ranges::none_of(changed.nodes(), [](const Node& node) { return node.op == Op::conv; }));
  const std::vector<Tensor> inputs = random_inputs(graph);
  expect_close(interpret(changed, inputs).at(0), interpret(graph, inputs).at(0));
}

TEST(Volumes, FewChannelsAreWidened) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 3, 5, 6, 7}));
  const ValueId w = graph.add_input("w", make_type(DType::bf16, {5, 3, 3, 3, 3}));
  graph.outputs = {graph.add(Op::conv, {x, w},
                             {{"strides", Dims{1, 2, 2}},
                              {"pads", Dims(6, 1)},
                              {"dilations", Dims(3, 1)},
                              {"groups", std::int64_t{1}}})};
  const Graph wide = widen_few_channels(graph);
  EXPECT_EQ(wide.type(wide.nodes().back().inputs[1]).dims(), (Dims{5, 4, 3, 3, 4}));
  const std::vector<Tensor> inputs = random_inputs(graph);
  expect_close(interpret(wide, inputs).at(0), interpret(graph, inputs).at(0));
}

}  // namespace
}  // namespace sylvite::volumes_test
