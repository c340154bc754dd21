#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::turn_products_test {
namespace {

Tensor narrow_tensor(const Dims& dims, std::uint32_t seed) {
  const Tensor wide = random_tensor(dims, seed, 0.5);
  Tensor narrow(DType::bf16, dims);
  for (std::int64_t i = 0; i < wide.size(); ++i) narrow.set_double(i, wide.as_double(i));
  return narrow;
}

ValueId mix(Graph& graph, ValueId x, std::int64_t width, std::uint32_t seed) {
  const std::int64_t depth = graph.type(x).dims().back();
  const ValueId product = graph.add(Op::matmul, {x, graph.add_constant(narrow_tensor({depth, width}, seed))});
  return graph.add(Op::add, {product, graph.add_constant(narrow_tensor({width}, seed + 1))});
}

/// Two images of so many tokens, of 16 channels.
ValueId tokens(Graph& graph, std::int64_t count) {
  return graph.add_input("x", make_type(DType::bf16, {2, count, 16}));
}

std::int64_t count(const Graph& graph, Op op) {
  return std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op == op; });
}

void expect_equal(const Graph& before, const Graph& after) {
  const std::vector<Tensor> inputs = random_inputs(before);
  expect_close(interpret(after, inputs)[0], interpret(before, inputs)[0], 0.02);
}

TEST(TurnProducts, LayersThatMixTokensReadThemWhereTheyLie) {
  Graph graph;
  const ValueId x = tokens(graph, 70);
  const ValueId turned = transpose(graph, x, {0, 2, 1});
  const ValueId wide =
      graph.add(Op::gelu, {mix(graph, turned, 100, 1)}, {{"approximate", std::string("none")}});
  const ValueId mixed = transpose(graph, mix(graph, wide, 70, 3), {0, 2, 1});
  graph.outputs = {graph.add(Op::add, {x, mixed})};
  const Graph after = turn_products(graph, {});
  EXPECT_EQ(count(after, Op::transpose), 2) << "of the weights alone";
  EXPECT_EQ(count(after, Op::slice), 2) << "rows of 200 and 140 bytes are none of whole vectors";
  for (const Node& node : after.nodes())
    if (node.op == Op::matmul) EXPECT_TRUE(after.type(node.inputs[0]).rank() == 2) << node.name;
  expect_equal(graph, after);
}

TEST(TurnProducts, DimsThatLieTogetherAreOne) {
  Graph graph;  // a transform along lines, as an einsum writes it
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 16, 8, 4}));
  const ValueId rows = reshape(graph, transpose(graph, x, {0, 2, 3, 1}), {1, 64, 16});
  std::vector<ValueId> parts;
  for (const std::uint32_t seed : {1U, 2U}) {
    const ValueId product =
        graph.add(Op::matmul, {rows, graph.add_constant(narrow_tensor({1, 16, 24}, seed))});
    parts.push_back(transpose(graph, reshape(graph, product, {2, 8, 4, 24}), {0, 3, 1, 2}));
  }
  graph.outputs = {graph.add(Op::sub, parts)};
  const Graph after = turn_products(graph, {});
  EXPECT_EQ(count(after, Op::transpose), 2) << "of the weights alone";
  for (const Node& node : after.nodes())
    if (node.op == Op::matmul) EXPECT_EQ(after.type(node.outputs[0]).dims(), (Dims{2, 24, 32}));
  expect_equal(graph, after);
}

TEST(TurnProducts, ImagesWhoseChannelsLieInnermostStay) {
  Graph graph;
  const ValueId image = graph.add(Op::cast, {conv(graph, graph.add_input("x", f32({2, 8, 4, 4})), 16, 3)},
                                  {{"to", std::string("bf16")}, {"rounds", std::int64_t{1}}});
  const ValueId pixels = mix(graph, transpose(graph, image, {0, 2, 3, 1}), 16, 1);
  graph.outputs = {transpose(graph, pixels, {0, 3, 1, 2})};
  LoweringOptions options;
  options.image_layout = ImageLayout::channels_last;
  EXPECT_TRUE(same_structure(turn_products(graph, options), graph));
  options.image_layout = ImageLayout::dense;
  EXPECT_FALSE(same_structure(turn_products(graph, options), graph));
}

TEST(TurnProducts, OfRowsOfAllImagesAsOne) {
  Graph graph;
  const ValueId x = tokens(graph, 64);
  const ValueId rows = reshape(graph, transpose(graph, x, {0, 2, 1}), {32, 64});
  const ValueId mixed = reshape(graph, mix(graph, rows, 64, 1), {2, 16, 64});
  graph.outputs = {graph.add(Op::mul, {x, transpose(graph, mixed, {0, 2, 1})})};
  const Graph after = turn_products(graph, {});
  EXPECT_EQ(count(after, Op::transpose), 1);
  EXPECT_EQ(count(after, Op::slice), 0);
  expect_equal(graph, after);
}

TEST(TurnProducts, StayWhereSomeReaderWantsTheOldOrder) {
  Graph graph;
  const ValueId x = tokens(graph, 64);
  const ValueId mixed = mix(graph, transpose(graph, x, {0, 2, 1}), 64, 1);
  graph.outputs = {transpose(graph, mixed, {0, 2, 1}), graph.add(Op::relu, {mixed})};
  EXPECT_TRUE(same_structure(turn_products(graph, {}), graph));
}

TEST(TurnProducts, StayWhereTheyWouldHaveFewRowsOrOddOnes) {
  for (const auto& [channels, width] : {std::pair{16, 8}, std::pair{12, 64}}) {
    Graph graph;
    const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 64, channels}));
    graph.outputs = {transpose(graph, mix(graph, transpose(graph, x, {0, 2, 1}), width, 1), {0, 2, 1})};
    EXPECT_TRUE(same_structure(turn_products(graph, {}), graph))
        << channels << " channels, " << width << " wide";
  }
}

TEST(TurnProducts, ColumnsAreRowsOnTheLeft) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {8, 32, 24, 16}));
  const ValueId column = graph.add_input("v", make_type(DType::bf16, {8, 32, 16, 1}));
  graph.outputs = {graph.add(Op::matmul, {x, column})};
  const Graph after = turn_products(graph, {});
  const auto product = std::ranges::find(after.nodes(), Op::matmul, &Node::op);
  EXPECT_EQ(after.type(product->outputs[0]).dims(), (Dims{8, 32, 1, 24}));
  expect_equal(graph, after);
  Graph few;
  few.outputs = {few.add(Op::matmul, {few.add_input("x", make_type(DType::bf16, {2, 24, 16})),
                                      few.add_input("v", make_type(DType::bf16, {2, 16, 1}))})};
  EXPECT_TRUE(same_structure(turn_products(few, {}), few));
}

}  // namespace
}  // namespace sylvite::turn_products_test
