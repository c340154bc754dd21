#include "lowering/passes/join_groups.h"

#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "sylvite/graph_text.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::join_groups_test {
namespace {

/// Convolutions, or gradients by filters, without one that has groups but is not depthwise.
std::size_t joined_in(const Graph& graph, Op op) {
  std::size_t count = 0;
  for (const Node& node : graph.nodes())
    count += node.op == op && node.attributes.integer("groups") == 1 ? 1 : 0;
  return count;
}

Tensor numbers(const TensorType& type, std::int64_t step) {
  Tensor tensor(type.dtype, type.dims());
  for (std::int64_t i = 0; i < tensor.size(); ++i)
    tensor.set_double(i, static_cast<double>(i * step % 7) - 3);
  return tensor;
}

void expect_joined(const std::string& text, Op op, std::size_t units) {
  const Graph graph = parse_graph(text), joined = join_groups(graph, {});
  EXPECT_EQ(joined_in(joined, op), units) << text;
  std::vector<Tensor> inputs;
  inputs.reserve(graph.inputs.size());
  for (const ValueId input : graph.inputs)
    inputs.push_back(numbers(graph.type(input), static_cast<std::int64_t>(inputs.size()) + 2));
  const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(joined, inputs).at(0);
  ASSERT_EQ(wanted.dims(), got.dims());
  for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i)) << i;
}

TEST(JoinGroups, ConvolutionsByComputedFilters) {
  expect_joined(
      R"(graph g(%x: bf16[2,48,5,4], %w: bf16[24,8,3,3], %b: bf16[24]) { %y: bf16[2,24,3,2] = conv(%x, %w, %b) {strides=[2,2], pads=[1,1,1,1], dilations=[1,1], groups=6} return %y })",
      Op::conv, 1);
  expect_joined(
      R"(graph g(%x: bf16[1,512,3,2], %w: bf16[256,16,1,3]) { %y: bf16[1,256,3,2] = conv(%x, %w) {strides=[1,1], pads=[0,1,0,1], dilations=[1,1], groups=32} return %y })",
      Op::conv, 4);
}

TEST(JoinGroups, GradientsByFilters) {
  expect_joined(
      R"(graph g(%g: bf16[2,256,3,2], %x: bf16[2,512,3,2]) { %v: f32[1,3,256,16] = filter_gradient(%g, %x) {kernel=[1,3], strides=[1,1], pads=[0,1,0,1], dilations=[1,1], groups=32, parts=1} return %v })",
      Op::filter_gradient, 4);
}

/// A convolution of so many groups by a constant filter, with a bias.
Graph grouped(DType dtype, std::int64_t groups, std::int64_t inputs, std::int64_t outputs) {
  Graph graph;
  const ValueId x = graph.add_input("x", TensorType{dtype, {2, groups * inputs, 5, 4}, {}});
  const ValueId w = graph.add_constant(numbers(TensorType{dtype, {groups * outputs, inputs, 3, 3}, {}}, 3));
  const ValueId b = graph.add_constant(numbers(TensorType{dtype, {groups * outputs}, {}}, 5));
  graph.outputs = {graph.add(
      Op::conv, {x, w, b},
      {{"strides", Dims{2, 1}}, {"pads", Dims{1, 1, 1, 1}}, {"dilations", Dims{1, 1}}, {"groups", groups}})};
  return graph;
}

TEST(JoinGroups, ConstantFiltersThatNoTemplateTakes) {
  struct Case {
    DType dtype;
    std::int64_t groups, inputs, outputs, joined;
  };
  for (const auto& [dtype, groups, inputs, outputs, joined] :
       {Case{DType::bf16, 15, 4, 4, 15}, Case{DType::bf16, 6, 20, 20, 2}, Case{DType::bf16, 3, 20, 12, 3},
        Case{DType::bf16, 18, 12, 12, 2}, Case{DType::bf16, 10, 6, 12, 10}, Case{DType::bf16, 16, 4, 8, 1},
        Case{DType::f32, 16, 4, 8, 1}, Case{DType::f32, 6, 20, 20, 2}, Case{DType::bf16, 5, 32, 24, 1},
        Case{DType::bf16, 60, 1, 1, 1}}) {
    SCOPED_TRACE(std::to_string(groups) + " groups of " + std::to_string(inputs));
    LoweringOptions options;
    options.tf32 = true;
    const Graph graph = grouped(dtype, groups, inputs, outputs), made = join_groups(graph, options);
    EXPECT_EQ(made.nodes()[0].attributes.integer("groups"), groups / joined);
    const std::vector<Tensor> given = {numbers(graph.type(graph.inputs[0]), 2)};
    const Tensor wanted = interpret(graph, given).at(0), got = interpret(made, given).at(0);
    ASSERT_EQ(wanted.dims(), got.dims());
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i)) << i;
  }
}

TEST(JoinGroups, OthersStay) {
  for (
      const char* text :
      {R"(graph g(%x: bf16[2,64,5,4], %w: bf16[64,1,3,3]) { %y: bf16[2,64,5,4] = conv(%x, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=64} return %y })",
       R"(graph g(%x: bf16[2,36,5,4], %w: bf16[36,4,3,3]) { %y: bf16[2,36,5,4] = conv(%x, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=9} return %y })",
       R"(graph g(%x: f32[2,64,5,4], %w: f32[64,8,3,3]) { %y: f32[2,64,5,4] = conv(%x, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=8} return %y })"})
    EXPECT_EQ(joined_in(join_groups(parse_graph(text), {}), Op::conv), 0U) << text;
}

/// As filters of each image's own are written: the images are groups.
TEST(JoinGroups, WhatATemplateTakesStays) {
  const Graph graph = parse_graph(
      R"(graph g(%x: bf16[1,512,5,4], %w: bf16[512,64,3,3]) { %y: bf16[1,512,5,4] = conv(%x, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=8} return %y })");
  LoweringOptions options;
  options.refuse_template = [](const Kernel& kernel) {
    const Graph& body = kernel.body;
    EXPECT_EQ(body.type(body.inputs[0]).layout.channel_block, 512);
    EXPECT_EQ(body.type(body.inputs[1]).layout.channel_block, 64);
    EXPECT_EQ(body.type(body.outputs[0]).layout.channel_block, 512);
    return std::string();
  };
  EXPECT_EQ(joined_in(join_groups(graph, options), Op::conv), 0U);
  options.refuse_template = [](const Kernel&) { return std::string("not here"); };
  EXPECT_EQ(joined_in(join_groups(graph, options), Op::conv), 4U);
}

}  // namespace
}  // namespace sylvite::join_groups_test
