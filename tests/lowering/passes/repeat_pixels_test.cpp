#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "frontend/graph/rewrite.h"
#include "frontend/values/size_table.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::repeat_pixels_test {
namespace {

/// One gather for each pair of a dim and the places in it.
Graph gathers(const Dims& dims, const std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>& each,
              int block = 0) {
  Graph graph;
  ValueId x = graph.add_input("x", make_type(DType::f32, dims));
  if (block != 0) x = graph.add(Op::to_layout, {x}, {{"block", std::int64_t{block}}});
  for (const auto& [axis, places] : each) {
    x = graph.add(Op::gather, {x, graph.add_constant(Tensor::vector_i64(places))}, {{"axis", axis}});
    if (block != 0) graph.value(x).type.layout.channel_block = block;
  }
  graph.outputs = {x};
  return graph;
}

TEST(RepeatPixels, DimsThatGrowByWholeFactorsAreOneBroadcast) {
  for (const Graph& graph : {gathers({2, 3, 2, 3}, {{2, {0, 0, 1, 1}}, {3, {0, 0, 0, 1, 1, 1, 2, 2, 2}}}),
                             gathers({2, 3}, {{0, {0, 0, 1, 1}}, {0, {0, 0, 1, 1, 2, 2, 3, 3}}}),
                             gathers({1, 4}, {{0, {0, 0, 0}}})}) {
    const Graph repeated = repeat_pixels(graph, {});
    EXPECT_EQ(std::ranges::count(repeated.nodes(), Op::gather, &Node::op), 0);
    EXPECT_EQ(std::ranges::count(repeated.nodes(), Op::broadcast_to, &Node::op), 1);
    EXPECT_EQ(repeated.type(repeated.outputs[0]), graph.type(graph.outputs[0]));
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(repeated, inputs).at(0), interpret(graph, inputs).at(0));
  }
}

TEST(RepeatPixels, AfterAnotherGatherTheRestIsABroadcast) {
  const Graph graph = gathers({2, 3}, {{0, {1, 0}}, {1, {0, 0, 1, 1, 2, 2}}}),
              repeated = repeat_pixels(graph, {});
  EXPECT_EQ(std::ranges::count(repeated.nodes(), Op::gather, &Node::op), 1);
  const std::vector<Tensor> inputs = random_inputs(graph);
  expect_close(interpret(repeated, inputs).at(0), interpret(graph, inputs).at(0));
}

TEST(RepeatPixels, OthersStay) {
  for (const Graph& graph : {gathers({2, 3}, {{1, {0, 0, 1, 2}}}), gathers({2, 3}, {{1, {0, 1, 2}}}),
                             gathers({2, 2}, {{1, {0, 1, 0, 1}}}), gathers({2, 4}, {{1, {0, 1}}}),
                             gathers({1, 8, 2, 2}, {{2, {0, 0, 1, 1}}}, 8)})
    EXPECT_TRUE(same_structure(repeat_pixels(graph, {}), graph));
}

Tensor repeated(std::int64_t from, std::int64_t to) {
  Tensor places(DType::i64, {to});
  for (std::int64_t i = 0; i < to; ++i) places.set_int64(i, i * from / to);
  return places;
}

TEST(RepeatPixels, WithOpenSizesWhatIsSoAtOneSizeStays) {
  const TableReading twofold{"twofold", {3}, [](const Dims& n) { return repeated(n.at(0), 2 * n.at(0)); }};
  const TableReading half_more{
      "half more", {3}, [](const Dims& n) { return repeated(n.at(0), (3 * n.at(0) + 3) / 2); }};
  const TableReading any{"any", {3, 6}, [](const Dims& n) { return repeated(n.at(0), n.at(1)); }};
  const auto gathering = [](const Tensor& places) {
    Graph graph;
    const ValueId x = graph.add_input("x", make_type(DType::f32, {2, 3}));
    graph.outputs = {graph.add(Op::gather, {x, graph.add_constant(places)}, {{"axis", std::int64_t{1}}})};
    return graph;
  };
  LoweringOptions open;
  open.open_sizes = true;
  const auto is_repeated = [&](const Tensor& places, const LoweringOptions& options) {
    const Graph graph = gathering(places);
    return !same_structure(repeat_pixels(graph, options), graph);
  };
  const TableReading of_three{"of three", {3}, [](const Dims& n) {
                                if (n.at(0) != 3) throw UnsupportedError("more than three");
                                return repeated(3, 6);
                              }};
  EXPECT_TRUE(is_repeated(make_size_table({any, twofold}), open));
  EXPECT_TRUE(is_repeated(make_size_table({of_three, twofold}), open));
  for (const Tensor& places :
       {make_size_table({any}), make_size_table({half_more}), make_size_table({of_three}), repeated(3, 6)}) {
    EXPECT_FALSE(is_repeated(places, open));
    EXPECT_TRUE(is_repeated(places, {}));
  }
}

}  // namespace
}  // namespace sylvite::repeat_pixels_test
