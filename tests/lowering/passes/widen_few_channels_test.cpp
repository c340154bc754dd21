#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "lowering/passes/pass_list.h"

namespace sylvite::widen_few_channels_test {
namespace {

Graph convolution(std::int64_t channels, std::int64_t taps, std::int64_t stride, std::int64_t pad,
                  DType dtype = DType::bf16) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(dtype, {2, channels, 11, 14}));
  Tensor filter(dtype, {5, channels, taps, taps});
  for (std::int64_t i = 0; i < filter.size(); ++i) filter.set_double(i, static_cast<double>(i % 7) - 3);
  graph.outputs = {graph.add(Op::conv, {x, graph.add_constant(filter)},
                             {{"strides", Dims{stride, stride}},
                              {"pads", Dims{pad, pad, pad, pad}},
                              {"dilations", Dims{1, 1}},
                              {"groups", std::int64_t{1}}})};
  return graph;
}

Dims filter_dims(const Graph& graph) {
  for (const Node& node : graph.nodes())
    if (node.op == Op::conv) return graph.type(node.inputs[1]).dims();
  return {};
}

TEST(FewChannels, KeepTheResult) {
  for (const auto& [taps, stride, pad] : {std::tuple{7, 2, 3}, {3, 1, 1}, {3, 2, 1}, {4, 3, 0}, {1, 2, 0}}) {
    const Graph graph = convolution(3, taps, stride, pad);
    Tensor x(DType::bf16, {2, 3, 11, 14});
    for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i % 11) - 5);
    const Graph wide = widen_few_channels(graph);
    EXPECT_EQ(wide.nodes().size(), 2U);
    const Tensor wanted = interpret(graph, {x}).at(0), got = interpret(wide, {x}).at(0);
    ASSERT_EQ(wanted.dims(), got.dims());
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i));
  }
}

TEST(FewChannels, OfFiltersThatAreNoConstantsAreWidened) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 3, 11, 14}));
  const ValueId w = graph.add_input("w", make_type(DType::bf16, {5, 3, 7, 7}));
  graph.outputs = {graph.add(Op::conv, {x, w},
                             {{"strides", Dims{2, 2}},
                              {"pads", Dims{3, 3, 3, 3}},
                              {"dilations", Dims{1, 1}},
                              {"groups", std::int64_t{1}}})};
  const Graph wide = widen_few_channels(graph);
  EXPECT_EQ(filter_dims(wide), (Dims{5, 4, 7, 8}));
  std::vector<Tensor> inputs{Tensor(DType::bf16, {2, 3, 11, 14}), Tensor(DType::bf16, {5, 3, 7, 7})};
  for (Tensor& input : inputs)
    for (std::int64_t i = 0; i < input.size(); ++i) input.set_double(i, static_cast<double>(i % 11) - 5);
  const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(wide, inputs).at(0);
  for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i));
}

TEST(FewChannels, AreWidenedToRunsOf16Bytes) {
  EXPECT_EQ(filter_dims(widen_few_channels(convolution(3, 7, 2, 3))), (Dims{5, 4, 7, 8}));
  EXPECT_EQ(filter_dims(widen_few_channels(convolution(3, 3, 1, 1))), (Dims{5, 8, 3, 3}));
}

/// Taps that lie apart have whole vectors of channels each, whatever the stride.
TEST(FewChannels, OfTapsThatLieApartAreWhole) {
  for (const std::int64_t stride : {1, 2}) {
    const Graph graph = convolution(3, 3, stride, 4);
    Graph apart;
    const ValueId x = apart.add_input("x", graph.type(graph.inputs[0]));
    const ValueId w = apart.add_constant(*graph.value(graph.nodes().begin()->inputs[1]).constant);
    Attributes attributes = graph.nodes().begin()->attributes;
    attributes.set("dilations", Dims{4, 2});
    apart.outputs = {apart.add(Op::conv, {x, w}, attributes)};
    const Graph wide = widen_few_channels(apart);
    EXPECT_EQ(filter_dims(wide), (Dims{5, 8, 3, 3}));
    Tensor input(DType::bf16, apart.type(x).dims());
    for (std::int64_t i = 0; i < input.size(); ++i) input.set_double(i, static_cast<double>(i % 11) - 5);
    const Tensor wanted = interpret(apart, {input}).at(0), got = interpret(wide, {input}).at(0);
    ASSERT_EQ(wanted.dims(), got.dims());
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i));
  }
}

TEST(FewChannels, OfFloatsAreWidenedForTf32) {
  for (const auto& [taps, stride, pad] : {std::tuple{7, 2, 3}, {3, 1, 1}}) {
    const Graph graph = convolution(3, taps, stride, pad, DType::f32);
    Tensor x(DType::f32, {2, 3, 11, 14});
    for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i % 11) - 5);
    const Graph wide = widen_few_channels(graph, true);
    EXPECT_EQ(filter_dims(wide), (Dims{5, 4, taps, taps}));
    const Tensor wanted = interpret(graph, {x}).at(0), got = interpret(wide, {x}).at(0);
    ASSERT_EQ(wanted.dims(), got.dims());
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i));
  }
}

TEST(FewChannels, OthersStay) {
  EXPECT_EQ(widen_few_channels(convolution(8, 3, 1, 1)).nodes().size(), 1U);
  EXPECT_EQ(widen_few_channels(convolution(3, 3, 1, 1, DType::f32)).nodes().size(), 1U);
}

}  // namespace
}  // namespace sylvite::widen_few_channels_test
