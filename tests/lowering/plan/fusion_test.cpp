#include "lowering/plan/fusion.h"

#include <gmock/gmock.h>

#include "frontend/ops/op_table.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::fusion_test {
namespace {

using testing::ElementsAre;

/// Each group as the names of its operations in order.
std::vector<std::string> groups_of(const Graph& graph, const LoweringOptions& options = {}) {
  std::vector<std::string> result;
  for (const Group& group : group_nodes(graph, no_joins(graph), options)) {
    std::string text;
    for (NodeId id : group.nodes)
      text += (text.empty() ? "" : " ") + std::string(op_info(graph.node(id).op).name);
    result.push_back(text);
  }
  return result;
}

class FusionTest : public testing::Test {
 protected:
  ValueId unary(Op op, ValueId x) { return graph.add(op, {x}); }
  ValueId softmax(ValueId x) { return graph.add(Op::softmax, {x}, {{"axis", std::int64_t{1}}}); }
  ValueId sum_rows(ValueId x) { return graph.add(Op::reduce_sum, {x}, {{"axes", Dims{1}}}); }

  Graph graph;
  ValueId x = graph.add_input("x", f32({8, 16}));
  ValueId y = graph.add_input("y", f32({8, 16}));
};

TEST_F(FusionTest, PointwiseChainIsOneKernel) {
  graph.outputs = {unary(Op::exp, graph.add(Op::add, {unary(Op::neg, x), y}))};
  EXPECT_THAT(groups_of(graph), ElementsAre("neg add exp"));
}

TEST_F(FusionTest, WideningIsRepeatedInEveryReader) {
  const auto groups = [](const char* from, const char* to) {
    Graph graph;
    const DType source = from == std::string("bf16") ? DType::bf16 : DType::f32;
    const ValueId x = graph.add_input("x", make_type(source, {8, 16}));
    const ValueId cast = graph.add(Op::cast, {x}, {{"to", std::string(to)}});
    for (int i = 0; i < 6; ++i)
      graph.outputs.push_back(graph.add(Op::softmax, {cast}, {{"axis", std::int64_t{i % 2}}}));
    return groups_of(graph).size();
  };
  EXPECT_EQ(groups("bf16", "f32"), 6U);
  EXPECT_EQ(groups("f32", "bf16"), 7U);
}

TEST_F(FusionTest, ProductsAreWidenedWhereTheyAreRead) {
  const auto groups = [](bool is_multiplied) {
    Graph graph;
    const ValueId a = graph.add_input("a", make_type(DType::bf16, {8, 16})),
                  b = graph.add_input("b", make_type(DType::bf16, {16, 16})),
                  c = graph.add_input("c", f32({16, 4}));
    const ValueId cast = graph.add(Op::cast, {graph.add(Op::matmul, {a, b})}, {{"to", std::string("f32")}});
    graph.outputs = {graph.add(Op::softmax, {cast}, {{"axis", std::int64_t{1}}}),
                     is_multiplied ? graph.add(Op::matmul, {cast, c}) : graph.add(Op::exp, {cast})};
    return groups_of(graph);
  };
  EXPECT_THAT(groups(false), ElementsAre("matmul", "cast softmax", "cast exp"));
  EXPECT_THAT(groups(true), ElementsAre("matmul cast", "softmax", "matmul"));
}

TEST_F(FusionTest, EpilogueJoinsTheMatmul) {
  graph.outputs = {unary(Op::gelu, dense(graph, x, 4))};
  EXPECT_THAT(groups_of(graph), ElementsAre("matmul add gelu"));
}

TEST_F(FusionTest, ConvolutionsRoundImagesAndComputeBlocksOfBf16) {
  const auto groups_for = [](std::int64_t channels, int block) {
    Graph image;
    TensorType type = f32({1, channels, 8, 8});
    type.layout.channel_block = block;
    const ValueId in = image.add_input("x", type);
    const ValueId rounded = image.add(Op::cast, {in}, {{"to", std::string("bf16")}});
    const ValueId filter = image.add_input("w", make_type(DType::bf16, {32, channels, 1, 1}));
    const ValueId out = image.add(Op::conv, {rounded, filter},
                                  {{"strides", Dims{1, 1}},
                                   {"dilations", Dims{1, 1}},
                                   {"pads", Dims{0, 0, 0, 0}},
                                   {"groups", std::int64_t{1}}});
    image.value(rounded).type.layout.channel_block = block;
    image.value(out).type.layout.channel_block = 32;
    image.outputs = {out};
    return groups_of(image);
  };
  EXPECT_THAT(groups_for(3, 0), ElementsAre("cast conv"));
  EXPECT_THAT(groups_for(64, 0), ElementsAre("cast", "conv"));
  EXPECT_THAT(groups_for(64, 32), ElementsAre("cast conv"));
}

TEST_F(FusionTest, DiamondJoinsWhole) {
  const ValueId product = dense(graph, x, 4);
  graph.outputs = {graph.add(Op::mul, {product, unary(Op::sigmoid, product)})};
  EXPECT_THAT(groups_of(graph), ElementsAre("matmul add sigmoid mul"));
}

TEST_F(FusionTest, SecondReaderEndsTheGroup) {
  const ValueId product = graph.add(Op::matmul, {x, weight(graph, {16, 16})});
  graph.outputs = {unary(Op::exp, product), softmax(product)};
  EXPECT_THAT(groups_of(graph), ElementsAre("matmul", "exp", "softmax"));
}

TEST_F(FusionTest, LaterProducerAdds) {
  const ValueId first = graph.add(Op::matmul, {x, weight(graph, {16, 16})});
  const ValueId second = graph.add(Op::matmul, {y, weight(graph, {16, 16})});
  graph.outputs = {unary(Op::relu, graph.add(Op::add, {first, second}))};
  EXPECT_THAT(groups_of(graph), ElementsAre("matmul", "matmul add relu"));
}

TEST_F(FusionTest, ReaderThatNeedsTheWholeResultStaysOut) {
  // x - sum(x): the sum must be complete before the difference can begin.
  const ValueId product = graph.add(Op::matmul, {x, weight(graph, {16, 16})});
  graph.outputs = {graph.add(Op::sub, {product, sum_rows(product)})};
  EXPECT_THAT(groups_of(graph), ElementsAre("matmul", "reduce_sum", "sub"));
}

TEST_F(FusionTest, CheapWorkAheadOfSoftmaxExpensiveWorkApart) {
  graph.outputs = {softmax(graph.add(Op::add, {graph.add(Op::mul, {x, scalar(graph, 0.5F)}), y}))};
  EXPECT_THAT(groups_of(graph), ElementsAre("mul add softmax"));
  graph.outputs = {softmax(unary(Op::tanh, x))};
  EXPECT_THAT(groups_of(graph), ElementsAre("tanh", "softmax"));
}

TEST_F(FusionTest, ReductionReadsEachElementOnce) {
  graph.outputs = {sum_rows(unary(Op::exp, x))};
  EXPECT_THAT(groups_of(graph), ElementsAre("exp reduce_sum"));
}

TEST_F(FusionTest, NothingIsComputedAheadOfMatmul) {
  graph.outputs = {graph.add(Op::matmul, {unary(Op::relu, x), transpose(graph, y, {1, 0})})};
  EXPECT_THAT(groups_of(graph), ElementsAre("relu", "transpose matmul"));
}

TEST_F(FusionTest, CheapWorkIsRepeatedRatherThanStored) {
  const ValueId scaled = graph.add(Op::mul, {x, scalar(graph, 2)});
  graph.outputs = {sum_rows(scaled), softmax(scaled)};
  EXPECT_THAT(groups_of(graph), ElementsAre("mul reduce_sum", "mul softmax"));
}

TEST_F(FusionTest, ExpensiveWorkIsStoredRatherThanRepeated) {
  const ValueId power = unary(Op::exp, x);
  graph.outputs = {sum_rows(power), unary(Op::neg, softmax(power))};
  EXPECT_THAT(groups_of(graph), ElementsAre("exp", "reduce_sum", "softmax neg"));
}

TEST_F(FusionTest, ViewReadThroughAnAliasIsWritten) {
  graph.outputs = {unary(Op::exp, reshape(graph, transpose(graph, x, {1, 0}), {4, 32}))};
  EXPECT_THAT(groups_of(graph), ElementsAre("transpose", "exp"));
}

TEST_F(FusionTest, GraphOutputsAreWritten) {
  const ValueId negative = unary(Op::neg, x);
  graph.outputs = {negative, unary(Op::relu, negative)};
  EXPECT_THAT(groups_of(graph), ElementsAre("neg relu"));
  EXPECT_THAT(outputs_of_launches(graph, {}), ElementsAre(2));
}

TEST_F(FusionTest, DeadNodesAreInNoGroup) {
  unary(Op::exp, x);
  graph.outputs = {unary(Op::neg, x)};
  EXPECT_THAT(groups_of(graph), ElementsAre("neg"));
}

// A change from blocks to planes has a schedule of its own; slices are copied on the way.
TEST_F(FusionTest, ConcatenationsReadPlanesAndShuffleThem) {
  Graph shuffle;
  TensorType blocked = f32({1, 6, 4, 8});
  blocked.layout.channel_block = 8;
  const ValueId in = shuffle.add_input("a", blocked);
  const ValueId planes = shuffle.add(Op::to_layout, {in}, {{"block", std::int64_t{0}}});
  const ValueId other = shuffle.add_input("b", f32({1, 12, 4, 8}));
  const ValueId half =
      shuffle.add(Op::slice, {other},
                  {{"starts", Dims{0, 0, 0, 0}}, {"sizes", Dims{1, 6, 4, 8}}, {"steps", Dims{1, 1, 1, 1}}});
  const ValueId both = shuffle.add(Op::concat, {half, planes}, {{"axis", std::int64_t{1}}});
  const ValueId split = shuffle.add(Op::reshape, {both}, {{"shape", Dims{1, 2, 6, 4, 8}}});
  const ValueId turned = shuffle.add(Op::transpose, {split}, {{"perm", Dims{0, 2, 1, 3, 4}}});
  shuffle.outputs = {shuffle.add(Op::reshape, {turned}, {{"shape", Dims{1, 12, 4, 8}}})};
  EXPECT_THAT(groups_of(shuffle), ElementsAre("to_layout", "slice concat reshape transpose reshape"));
}

TEST_F(FusionTest, ReshapeBehindAConcatIsLeftToMemory) {
  const ValueId both = graph.add(Op::concat, {x, x}, {{"axis", std::int64_t{1}}});
  graph.outputs = {reshape(graph, both, {graph.type(both).element_count()})};
  EXPECT_THAT(groups_of(graph), ElementsAre("concat"));
}

TEST_F(FusionTest, PoolingOnAGpuLeavesLayoutsToTheirReaders) {
  for (const std::int64_t side : {2, 8}) {
    Graph graph;
    const ValueId image = graph.add_input("image", make_type(DType::bf16, {2, 16, side, side}));
    const ValueId pooled = graph.add(Op::max_pool, {image},
                                     {{"kernel", Dims{2, 2}},
                                      {"strides", Dims{2, 2}},
                                      {"pads", Dims{0, 0, 0, 0}},
                                      {"dilations", Dims{1, 1}}});
    graph.outputs = {graph.add(Op::to_layout, {pooled}, {{"block", std::int64_t{16}}})};
    EXPECT_THAT(groups_of(graph), ElementsAre("max_pool to_layout"));
    if (side == 8) EXPECT_THAT(groups_of(graph, channels_last()), ElementsAre("max_pool", "to_layout"));
    if (side == 2) EXPECT_THAT(groups_of(graph, channels_last()), ElementsAre("max_pool to_layout"));
  }
}

TEST_F(FusionTest, ConcatsAreTurnedByThemselvesWherePartsComeInnermost) {
  const auto groups_with = [](const Dims& perm) {
    Graph graph;
    const ValueId a = graph.add_input("a", f32({2, 3, 4, 5}));
    const ValueId both = graph.add(Op::concat, {a, a}, {{"axis", std::int64_t{1}}});
    graph.outputs = {graph.add(Op::transpose, {both}, {{"perm", perm}})};
    return groups_of(graph);
  };
  EXPECT_THAT(groups_with({0, 2, 3, 1}), ElementsAre("concat", "transpose"));
  EXPECT_THAT(groups_with({0, 2, 1, 3}), ElementsAre("concat transpose"));
}

/// As halves of images are, which a pad would read element by element, each asking whether it is in the image.
TEST_F(FusionTest, PadsOfRowsReadWhatStepsAlongThemFromMemory) {
  const auto groups = [](const Dims& around, const LoweringOptions& options) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({8, 16}));
    const auto half = [&](std::int64_t start) {
      return graph.add(Op::slice, {x},
                       {{"starts", Dims{0, start}}, {"sizes", Dims{8, 8}}, {"steps", Dims{1, 2}}});
    };
    const ValueId sum = graph.add(Op::add, {half(0), half(1)});
    graph.outputs = {graph.add(Op::pad, {sum}, {{"low", around}, {"high", around}})};
    return groups_of(graph, options);
  };
  EXPECT_THAT(groups({0, 3}, {}), ElementsAre("slice slice add", "pad"));
  EXPECT_THAT(groups({3, 0}, {}), ElementsAre("slice slice add pad"));
  LoweringOptions on_gpu;
  on_gpu.image_layout = ImageLayout::channels_last;
  EXPECT_THAT(groups({0, 3}, on_gpu), ElementsAre("slice slice add pad"));
}

TEST_F(FusionTest, OriginSaysWhy) {
  graph.outputs = {unary(Op::gelu, dense(graph, x, 4))};
  EXPECT_EQ(group_nodes(graph, no_joins(graph), {}).at(0).reason, "matmul; then add gelu; ends: output");
}

}  // namespace
}  // namespace sylvite::fusion_test
