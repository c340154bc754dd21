#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "frontend/passes/store_narrow.h"
#include "lowering/passes/lay_small_values.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/fusion.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::assign_layouts_test {
namespace {

int count(const Graph& graph, Op op) {
  return static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                        [&](const Node& node) { return node.op == op; }));
}

/// The channel block of the value that the first such node makes.
int block_after(const Graph& graph, Op op) {
  for (const Node& node : graph.nodes())
    if (node.op == op) return graph.type(node.outputs[0]).layout.channel_block;
  return -1;
}

/// Three by three, of bf16.
ValueId narrow_conv(Graph& graph, ValueId x, std::int64_t filters) {
  Tensor filter(DType::bf16, {filters, graph.type(x).dims()[1], 3, 3});
  for (std::int64_t i = 0; i < filter.size(); ++i) filter.set_double(i, static_cast<double>(i % 5 - 2) / 64);
  return graph.add(Op::conv, {x, graph.add_constant(std::move(filter))},
                   {{"strides", Dims{1, 1}},
                    {"pads", Dims{1, 1, 1, 1}},
                    {"dilations", Dims{1, 1}},
                    {"groups", std::int64_t{1}}});
}

TEST(Layouts, GraphsWithoutConvolutionsStayDense) {
  const Graph graph = encoder(1);
  EXPECT_EQ(assign_layouts(graph, {}).nodes().size(), graph.nodes().size());
}

TEST(Layouts, ImageStaysDenseAndResultIsBlocked) {
  Graph graph;
  const ValueId image = graph.add_input("image", f32({1, 3, 8, 8}));
  graph.outputs = {graph.add(Op::relu, {conv(graph, conv(graph, image, 24, 3), 32, 1)})};
  const Graph result = assign_layouts(graph, {});
  EXPECT_EQ(block_after(result, Op::conv), 16);
  EXPECT_EQ(block_after(result, Op::relu), 16);
  EXPECT_EQ(count(result, Op::to_layout), 1) << "only for the output";
  EXPECT_EQ(result.type(result.outputs[0]), graph.type(graph.outputs[0]));
}

TEST(Layouts, ResidualNetworkChangesLayoutOnce) {
  const Graph result = assign_layouts(residual_network(), {});
  int blocked_constants = 0;
  for (const Node& node : result.nodes())
    if (node.op == Op::to_layout && result.is_constant(node.inputs[0])) ++blocked_constants;
  EXPECT_EQ(blocked_constants, 0);
  EXPECT_LE(count(result, Op::to_layout), 2);
}

TEST(Layouts, MasksOfOneValueAreMadeOfItsBlocks) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 32, 8, 8})),
                mean = graph.add_input("mean", f32({1, 32, 1, 1}));
  const ValueId gradient = graph.add_input("gradient", f32({2, 32, 8, 8}));
  const ValueId centred = graph.add(Op::sub, {x, mean});
  const ValueId low = scalar(graph, -3), high = scalar(graph, 3);
  const ValueId slope = graph.add(Op::mul, {centred, high});
  const ValueId back = conv(graph, gradient, 32, 1);
  const ValueId inner = graph.add(
      Op::where, {graph.add(Op::less_equal, {centred, high}), graph.add(Op::mul, {back, slope}), back});
  graph.outputs = {graph.add(Op::where, {graph.add(Op::less, {centred, low}), back, inner})};
  const Graph result = assign_layouts(graph, {});
  EXPECT_EQ(count(result, Op::to_layout), 3) << "of gradient, centred, and the output";
  for (const Op op : {Op::less, Op::less_equal, Op::where}) EXPECT_EQ(block_after(result, op), 16);
  EXPECT_EQ(count(result, Op::less), 1);
}

/// concat of dense parts of 32 channels, read by `reader`.
Graph concat_read_by(const std::function<ValueId(Graph&, ValueId)>& reader) {
  Graph graph;
  const ValueId a = graph.add_input("a", f32({1, 32, 4, 6})), b = graph.add_input("b", f32({1, 32, 4, 6}));
  const ValueId both =
      graph.add(Op::concat, {graph.add(Op::exp, {a}), graph.add(Op::exp, {b})}, {{"axis", std::int64_t{1}}});
  graph.outputs = {reader(graph, both)};
  return graph;
}

TEST(Layouts, PartsOfWhatConvolutionsReadChangeTheirs) {
  const Graph graph = concat_read_by([](Graph& g, ValueId x) { return conv(g, x, 16, 1); });
  EXPECT_EQ(block_after(assign_layouts(graph, {}), Op::concat), 16);
  expect_lowers_faithfully(graph);
  const Plan plan = lower(graph);
  for (const Kernel& kernel : plan.kernels)
    EXPECT_EQ(kernel.text.find("concat"), std::string::npos) << "each part is written at its place";
}

TEST(Layouts, PartsOfWhatOthersReadStayDense) {
  const Graph graph = concat_read_by([](Graph& g, ValueId x) {
    return g.add(Op::matmul, {conv(g, x, 16, 1), g.add(Op::reshape, {x}, {{"shape", Dims{1, 1, 6, 256}}})});
  });
  EXPECT_EQ(block_after(assign_layouts(graph, {}), Op::concat), 0);
}

TEST(Layouts, ChannelConstantsBecomeBlockedWeights) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({1, 16, 4, 4})), 20, 1);
  graph.outputs = {graph.add(Op::mul, {x, weight(graph, {1, 20, 1, 1})})};
  expect_lowers_faithfully(graph);
  const Plan plan = lower(graph);
  int blocked = 0;
  for (const Buffer& buffer : plan.buffers)
    blocked += buffer.kind == BufferKind::weight && buffer.type.layout.channel_block == 16 ? 1 : 0;
  EXPECT_EQ(blocked, 1);
}

TEST(Layouts, OperationsThatMayBlowUpOnPaddingStayDense) {
  for (const Op op : {Op::exp, Op::log, Op::sqrt, Op::rsqrt, Op::reciprocal}) {
    Graph graph;
    graph.outputs = {graph.add(op, {conv(graph, graph.add_input("x", f32({1, 16, 4, 4})), 20, 1)})};
    EXPECT_EQ(block_after(assign_layouts(graph, {}), op), 0);
  }
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({1, 16, 4, 4})), 20, 1);
  graph.outputs = {graph.add(Op::div, {x, weight(graph, {1, 20, 1, 1})})};
  EXPECT_EQ(block_after(assign_layouts(graph, {}), Op::div), 0);
}

TEST(Layouts, OperationsThatMayBlowUpTakeBlocksWithoutPadding) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({1, 16, 4, 4})), 32, 1);
  graph.outputs = {graph.add(Op::div, {x, weight(graph, {1, 32, 1, 1})})};
  EXPECT_EQ(block_after(assign_layouts(graph, {}), Op::div), 16);
  expect_lowers_faithfully(graph);
}

TEST(Layouts, StatisticsOfABatchAreFoldedInBlocks) {
  for (const std::int64_t channels : {32, 20}) {
    Graph graph;
    const ValueId x = conv(graph, graph.add_input("x", f32({3, 16, 5, 4})), channels, 3);
    const ValueId sum =
        graph.add(Op::reduce_sum, {x}, {{"axes", Dims{0, 2, 3}}, {"keepdims", std::int64_t{1}}});
    graph.outputs = {graph.add(Op::sub, {x, sum})};
    EXPECT_EQ(block_after(assign_layouts(graph, {}), Op::reduce_sum), 16);
    expect_lowers_faithfully(graph);
  }
}

TEST(Layouts, FiltersThatAreNoConstantsArePackedByTheConvolution) {
  for (const std::int64_t groups : {1, 2, 32}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({2, 32, 6, 7}));
    const ValueId w = graph.add_input("w", f32({32 / groups, 32, 3, 3}));
    const ValueId turned = transpose(graph, w, {1, 0, 2, 3});
    graph.outputs = {graph.add(Op::conv, {x, turned},
                               {{"strides", Dims{1, 1}},
                                {"dilations", Dims{1, 1}},
                                {"pads", Dims{1, 1, 1, 1}},
                                {"groups", groups}})};
    const Plan plan = lower(graph, {});
    EXPECT_EQ(plan.launches.size(), 3U) << "to blocks, the convolution, from blocks";
    expect_lowers_faithfully(graph);
  }
}

TEST(Layouts, GroupsLieInBlocksWhereFewOfTheirChannelsAreWasted) {
  for (const auto& [groups, block] : {std::pair<std::int64_t, int>(1, 16), {2, 16}, {4, 0}, {16, 0}}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({1, 32, 4, 4}));
    graph.outputs = {conv(graph, x, 32, 3, groups)};
    EXPECT_EQ(block_after(assign_layouts(graph, {}), Op::conv), block) << groups;
    expect_lowers_faithfully(graph);
  }
  Graph depthwise;
  const ValueId y = depthwise.add_input("y", f32({1, 32, 4, 4}));
  depthwise.outputs = {conv(depthwise, y, 32, 3, 32)};
  EXPECT_EQ(block_after(assign_layouts(depthwise, {}), Op::conv), 16);
}

/// The block of what a convolution of an image makes, where nothing else is blocked.
int block_of_result(std::int64_t channels, std::int64_t made, std::int64_t groups) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({1, channels, 9, 9}));
  graph.outputs = {conv(graph, x, made, 3, groups)};
  expect_lowers_faithfully(graph);
  return block_after(assign_layouts(graph, {}), Op::conv);
}

TEST(Layouts, FewChannelsThatBecomeFewStayInRows) {
  EXPECT_EQ(block_of_result(3, 3, 3), 0);
  EXPECT_EQ(block_of_result(8, 8, 8), 0);
  EXPECT_EQ(block_of_result(12, 12, 12), 16);
  EXPECT_EQ(block_of_result(1, 4, 1), 0);
  EXPECT_EQ(block_of_result(3, 8, 1), 16);
  Graph graph;  // what is blocked already stays so
  const ValueId x = graph.add_input("x", f32({1, 3, 9, 9}));
  graph.outputs = {conv(graph, conv(graph, x, 8, 3), 8, 3, 8)};
  EXPECT_EQ(count(assign_layouts(graph, {}), Op::to_layout), 1);
}

TEST(Layouts, ConcatNeedsWholeBlocksBeforeItsLastPart) {
  for (const std::int64_t width : {16, 20}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({1, 16, 4, 4}));
    graph.outputs = {graph.add(Op::concat, {conv(graph, x, width, 1), conv(graph, x, 24, 1)},
                               {{"axis", std::int64_t{1}}})};
    EXPECT_EQ(block_after(assign_layouts(graph, {}), Op::concat), width == 16 ? 16 : 0);
    expect_lowers_faithfully(graph);
  }
}

TEST(Layouts, ChannelsLastIsOneBlockOfAllChannels) {
  const Graph graph = store_narrow(residual_network(), DType::bf16);
  const Plan plan = lower(graph, channels_last());
  int convolutions = 0;
  for (const Kernel& kernel : plan.kernels) {
    if (kernel.kind != KernelClass::convolution) continue;
    ++convolutions;
    const TensorType& type = kernel.body.type(kernel.body.outputs[0]);
    EXPECT_EQ(type.layout.channel_block, type.dims()[1]) << kernel.text;
    EXPECT_EQ(kernel.body.type(kernel.body.inputs[0]).layout.channel_block % 4, 0);
  }
  EXPECT_GE(convolutions, 5);
  expect_faithful(graph, plan);
}

/// As in a network that trains: it lies as its images do, since it cannot be packed before.
TEST(Layouts, FiltersThatAreNoWeightsHaveTheirChannelsInnermost) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 8, 6, 5}));
  const ValueId w = graph.add_input("w", make_type(DType::bf16, {16, 8, 3, 3}));
  graph.outputs = {graph.add(Op::conv, {x, w},
                             {{"strides", Dims{1, 1}},
                              {"pads", Dims{1, 1, 1, 1}},
                              {"dilations", Dims{1, 1}},
                              {"groups", std::int64_t{1}}})};
  const Graph result = assign_layouts(graph, channels_last());
  for (const Node& node : result.nodes())
    if (node.op == Op::conv) EXPECT_EQ(result.type(node.inputs[1]).layout.channel_block, 8);
  expect_faithful(graph, lower(graph, channels_last()));
}

/// Moments of a batch, and gradients of filters: rows of channels and filters lie as without layouts.
TEST(Layouts, SumsOverPixelsReadChannelsInnermost) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 8, 6, 5}));
  const ValueId w = graph.add_constant(Tensor(DType::bf16, {16, 8, 3, 3}));
  const Attributes window = {{"strides", Dims{1, 1}}, {"pads", Dims{1, 1, 1, 1}}, {"dilations", Dims{1, 1}}};
  Attributes convolution = window, gradient = window;
  convolution.set("groups", std::int64_t{1});
  gradient.set("kernel", Dims{3, 3});
  const ValueId y = graph.add(Op::conv, {x, w}, convolution);
  const ValueId wide = graph.add(Op::cast, {y}, {{"to", std::string("f32")}});
  graph.outputs = {
      graph.add(Op::reduce_sum, {wide}, {{"axes", Dims{0, 2, 3}}, {"keepdims", std::int64_t{0}}}),
      graph.add(Op::reduce_sum, {wide}, {{"axes", Dims{0, 2, 3}}, {"keepdims", std::int64_t{1}}}),
      graph.add(Op::filter_gradient, {y, x}, gradient)};
  const Graph result = assign_layouts(graph, channels_last());
  for (const Node& node : result.nodes()) {
    if (node.op == Op::reduce_sum) EXPECT_EQ(result.type(node.inputs[0]).layout.channel_block, 16);
    if (node.op != Op::filter_gradient) continue;
    EXPECT_EQ(result.type(node.inputs[1]).layout.channel_block, 8);
    EXPECT_EQ(result.type(node.outputs[0]).layout.channel_block, 0);
  }
  expect_faithful(graph, lower(graph, channels_last()));
}

/// Where an image is one pixel, the layouts are the same bytes.
TEST(Layouts, ChannelsLastTakesFloatsForTf32) {
  LoweringOptions options = channels_last();
  EXPECT_EQ(block_after(assign_layouts(residual_network(), options), Op::hard_swish), 0);
  options.tf32 = true;
  EXPECT_EQ(block_after(assign_layouts(residual_network(), options), Op::hard_swish), 40);
}

TEST(Layouts, OnePixelNeedsNoMove) {
  for (const std::int64_t extent : {1, 2}) {
    Graph graph;
    const ValueId x = graph.add_input("x", make_type(DType::bf16, {3, 8, extent, extent}));
    for (const std::int64_t block : {8, 4, 3}) {
      const ValueId blocked = graph.add(Op::to_layout, {x}, {{"block", block}});
      EXPECT_EQ(is_free(graph, graph.node(graph.value(blocked).producer)), extent == 1 && block != 3);
    }
  }
}

TEST(Layouts, TransposesToRowsOfChannelsNeedNoMove) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 8, 6, 5}));
  const ValueId blocked = graph.add(Op::to_layout, {x}, {{"block", std::int64_t{8}}});
  const ValueId rows = transpose(graph, blocked, {0, 2, 3, 1});
  EXPECT_TRUE(is_free(graph, graph.node(graph.value(rows).producer)));
  const ValueId columns = transpose(graph, blocked, {0, 3, 2, 1});
  EXPECT_FALSE(is_free(graph, graph.node(graph.value(columns).producer)));
  const ValueId dense = transpose(graph, x, {0, 2, 3, 1});
  EXPECT_FALSE(is_free(graph, graph.node(graph.value(dense).producer)));
}

/// relu(conv(x) * (scale * scale)): the product of numbers is made in the layout of the image, and in its kernel.
/// Lines cut into pairs, or joined: the pixels lie in the same order.
TEST(Layouts, ReshapesOfPixelsNeedNoMove) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 8, 6, 4}));
  const ValueId pairs = graph.add(Op::reshape, {narrow_conv(graph, x, 16)}, {{"shape", Dims{2, 16, 12, 2}}});
  const ValueId work = graph.add(Op::relu, {pairs});
  const ValueId line = graph.add(Op::reshape, {work}, {{"shape", Dims{2, 16, 1, 24}}});
  graph.outputs = {narrow_conv(graph, line, 8)};
  const Graph result = assign_layouts(graph, channels_last());
  EXPECT_EQ(block_after(result, Op::relu), 16);
  EXPECT_EQ(count(result, Op::to_layout), 2) << "of the model's input and output";
  expect_faithful(graph, lower(graph, channels_last()));
}

/// Sums of lines, of columns, and of both, which work on each pixel reads.
TEST(Layouts, FoldsOfPixelsTakeImagesAsTheyLie) {
  for (const Dims& axes : {Dims{2}, Dims{3}, Dims{2, 3}}) {
    Graph graph;
    const ValueId x = narrow_conv(graph, graph.add_input("x", make_type(DType::bf16, {2, 8, 6, 4})), 16);
    const ValueId sum = graph.add(Op::reduce_sum, {x}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
    graph.outputs = {narrow_conv(graph, graph.add(Op::mul, {x, graph.add(Op::tanh, {sum})}), 8)};
    const Graph result = assign_layouts(graph, channels_last());
    EXPECT_EQ(block_after(result, Op::reduce_sum), 16) << axes[0];
    EXPECT_EQ(count(result, Op::to_layout), 2) << "of the model's input and output";
    expect_faithful(graph, lower(graph, channels_last()));
  }
}

TEST(Layouts, ReshapesThatOthersReadStayDense) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 8, 6, 4}));
  const ValueId pairs = graph.add(Op::reshape, {narrow_conv(graph, x, 16)}, {{"shape", Dims{2, 16, 12, 2}}});
  graph.outputs = {graph.add(Op::transpose, {pairs}, {{"perm", Dims{3, 2, 1, 0}}})};
  const Graph result = assign_layouts(graph, channels_last());
  for (const Node& node : result.nodes())
    if (node.op == Op::reshape) EXPECT_EQ(result.type(node.inputs[0]).dims(), (Dims{2, 16, 6, 4}));
  expect_faithful(graph, lower(graph, channels_last()));
}

TEST(Layouts, NumbersForChannelsAreMadeByTheirReaders) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 16, 6, 5})),
                scale = graph.add_input("scale", f32({1, 16, 1, 1}));
  const ValueId square = graph.add(Op::mul, {scale, scale});
  const ValueId work =
      graph.add(Op::sub, {graph.add(Op::mul, {conv(graph, x, 16, 1), square}), graph.add(Op::exp, {square})});
  graph.outputs = {conv(graph, work, 16, 1), square};
  const Graph narrow = store_narrow(graph, DType::bf16);
  EXPECT_EQ(count(lay_small_values(assign_layouts(narrow, channels_last())), Op::to_layout),
            count(assign_layouts(narrow, channels_last()), Op::to_layout))
      << "an output lies as it is";
  graph.outputs.pop_back();
  const Graph inside = store_narrow(graph, DType::bf16);
  const Graph laid = lay_small_values(assign_layouts(inside, channels_last()));
  EXPECT_EQ(block_after(laid, Op::exp), 16);
  expect_faithful(inside, lower(inside, channels_last()));
}

/// A mask that a forward graph saved as its images lie: what it hides lies so, too.
TEST(Layouts, TruthValuesMayComeAsRowsOfChannels) {
  Graph graph;
  const ValueId rows = graph.add_input("mask", make_type(DType::boolean, {2, 6, 5, 8}));
  const ValueId mask = transpose(graph, rows, {0, 3, 1, 2});
  const ValueId mean = graph.add_input("mean", make_type(DType::bf16, {2, 8, 1, 1}));
  const ValueId zero = graph.add_constant(Tensor(DType::bf16, {}));
  const ValueId hidden = graph.add(Op::where, {mask, mean, zero});
  const ValueId filter = graph.add_constant(Tensor(DType::bf16, {8, 8, 1, 1}));
  graph.outputs = {graph.add(Op::conv, {hidden, filter},
                             {{"strides", Dims{1, 1}},
                              {"pads", Dims{0, 0, 0, 0}},
                              {"dilations", Dims{1, 1}},
                              {"groups", std::int64_t{1}}})};
  EXPECT_EQ(block_after(assign_layouts(graph, channels_last()), Op::where), 8);
}

TEST(Layouts, GroupsThatFitTensorCoresHaveTheirChannelsInnermost) {
  for (const auto& [groups, is_taken] : {std::pair<std::int64_t, bool>(2, true), {8, true}, {6, false}}) {
    Graph graph;
    const std::int64_t channels = groups == 6 ? 24 : 32;
    graph.outputs = {conv(graph, graph.add_input("x", f32({1, channels, 4, 4})), channels, 3, groups)};
    const Graph laid_out = assign_layouts(store_narrow(graph, DType::bf16), channels_last());
    EXPECT_EQ(block_after(laid_out, Op::conv), is_taken ? channels : 0) << groups;
  }
}

TEST(Layouts, ChannelsLastConcatIsNotWrittenInPlace) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({1, 8, 4, 4}));
  graph.outputs = {
      graph.add(Op::concat, {conv(graph, x, 8, 1), conv(graph, x, 16, 1)}, {{"axis", std::int64_t{1}}})};
  const Graph narrow = store_narrow(graph, DType::bf16);
  const std::vector<Tensor> inputs = random_inputs(narrow);
  const Plan plan = lower(narrow, channels_last());
  const Tensor wanted = interpret(narrow, inputs).at(0), got = interpret_plan(plan, inputs).at(0);
  for (std::int64_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(wanted.as_double(i), got.as_double(i));
}

/// A picture that is joined to much that convolutions made: one part is turned, not all of the others and the result.
TEST(Layouts, ChannelsLastConcatTurnsItsSmallerParts) {
  for (const std::int64_t dense : {8, 32}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({1, 8, 4, 4}));
    const ValueId y = graph.add_input("y", f32({1, dense, 4, 4}));
    const ValueId both = graph.add(Op::concat, {conv(graph, x, 16, 1), y}, {{"axis", std::int64_t{1}}});
    graph.outputs = {conv(graph, both, 8, 1)};
    const Graph narrow = store_narrow(graph, DType::bf16);
    EXPECT_EQ(block_after(assign_layouts(narrow, channels_last()), Op::concat), dense == 8 ? 24 : 0);
    expect_faithful(narrow, lower(narrow, channels_last()));
  }
}

/// Gates are f32 beside bf16: the cast between stays in blocks.
TEST(Layouts, WideningKeepsBlocks) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({1, 32, 8, 8}));
  const ValueId y = conv(graph, x, 32, 1);
  const ValueId mean = graph.add(Op::reduce_sum, {y}, {{"axes", Dims{2, 3}}, {"keepdims", std::int64_t{1}}});
  const ValueId gate = graph.add(Op::sigmoid, {conv(graph, mean, 32, 1)});
  graph.outputs = {conv(graph, graph.add(Op::mul, {y, gate}), 32, 1)};
  const Graph laid_out = assign_layouts(store_narrow(graph, DType::bf16), {});
  for (const Node& node : laid_out.nodes())
    if (node.op == Op::sigmoid) EXPECT_EQ(laid_out.type(node.outputs[0]).layout.channel_block, 16);
  expect_lowers_faithfully(store_narrow(graph, DType::bf16));
}

/// What neighbours sum to, weighed by a convolution's channels: the weights change their layout, not the neighbours and the products.
TEST(Layouts, SumsOverChannelsOfWorkWithDenseValuesAreDense) {
  for (const bool over_channels : {true, false}) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({1, 16, 8, 8})), y = graph.add_input("y", f32({1, 16, 8, 8}));
    const ValueId around = graph.add(Op::abs, {y});
    const ValueId product = graph.add(Op::mul, {conv(graph, x, 16, 1), around});
    const ValueId sum =
        graph.add(Op::reduce_sum, {product},
                  {{"axes", over_channels ? Dims{1} : Dims{2, 3}}, {"keepdims", std::int64_t{1}}});
    graph.outputs = {conv(graph, sum, 8, 1)};
    const Graph narrow = store_narrow(graph, DType::bf16);
    const Graph laid_out = assign_layouts(narrow, channels_last());
    EXPECT_EQ(block_after(laid_out, Op::mul), over_channels ? 0 : 16);
    expect_faithful(narrow, lower(narrow, channels_last()));
  }
}

TEST(Layouts, CanBeSwitchedOff) {
  LoweringOptions options;
  options.image_layout = ImageLayout::dense;
  PassRunner runner;
  EXPECT_EQ(block_after(runner.run(lowering_passes(), residual_network(), options), Op::conv), 0);
}

}  // namespace
}  // namespace sylvite::assign_layouts_test
