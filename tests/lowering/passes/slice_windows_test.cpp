// Windows of one channel as slices.

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/views.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::slice_windows_test {
namespace {

Graph pool_of(Op op, const Dims& image, const Dims& kernel, std::int64_t stride, std::int64_t pad) {
  Graph graph;
  const std::size_t rank = kernel.size();
  graph.outputs = {graph.add(op, {graph.add_input("x", make_type(DType::bf16, image))},
                             {{"kernel", kernel},
                              {"strides", Dims(rank, stride)},
                              {"pads", Dims(2 * rank, pad)},
                              {"dilations", Dims(rank, 1)}})};
  return graph;
}

TEST(SliceWindows, OfOneChannelAlongOneDimAreWorkOnSlices) {
  for (const Op op : {Op::avg_pool, Op::max_pool}) {
    for (const Dims& kernel : {Dims{5, 1, 1}, Dims{1, 3, 1}}) {
      const Graph graph = pool_of(op, {2, 1, 12, 7, 9}, kernel, 1, 0), after = slice_windows(graph, true);
      EXPECT_EQ(std::ranges::count(after.nodes(), op, &Node::op), 0);
      EXPECT_EQ(after.type(after.outputs[0]), graph.type(graph.outputs[0]));
      const std::vector<Tensor> inputs = random_inputs(graph);
      expect_close(interpret(after, inputs).at(0), interpret(graph, inputs).at(0), 1e-2);
    }
  }
}

TEST(SliceWindows, MeansOverChannelsOfAnImageAreProductsByBands) {
  for (const std::int64_t high : {1, 2}) {
    Graph graph;
    const ValueId x = graph.add_input("x", make_type(DType::bf16, {2, 16, 5, 8}));
    const ValueId zero = graph.add_constant(Tensor(DType::bf16, {}));
    const ValueId wide = graph.add(
        Op::pad, {add_reshape(graph, x, {2, 1, 16, 5, 8}), zero},
        {{"low", Dims{0, 0, 2, 0, 0}}, {"high", Dims{0, 0, high, 0, 0}}, {"interior", Dims{0, 0, 0, 0, 0}}});
    const ValueId means = graph.add(Op::avg_pool, {wide},
                                    {{"kernel", Dims{4, 1, 1}},
                                     {"strides", Dims{1, 1, 1}},
                                     {"pads", Dims{0, 0, 0, 0, 0, 0}},
                                     {"dilations", Dims{1, 1, 1}}});
    graph.outputs = {means};
    const std::vector<Tensor> inputs = random_inputs(graph);
    for (const bool innermost : {false, true}) {
      const Graph after = slice_windows(graph, innermost);
      EXPECT_EQ(std::ranges::count(after.nodes(), Op::conv, &Node::op), innermost ? 1 : 0);
      EXPECT_EQ(std::ranges::count(after.nodes(), Op::avg_pool, &Node::op), 0);
      expect_close(interpret(after, inputs).at(0), interpret(graph, inputs).at(0), 1e-2);
    }
  }
}

TEST(SliceWindows, OthersStay) {
  const Graph graphs[] = {
      pool_of(Op::avg_pool, {2, 3, 12, 7, 9}, {5, 1, 1}, 1, 0),   // several channels
      pool_of(Op::avg_pool, {2, 1, 12, 7, 9}, {1, 1, 3}, 1, 0),   // the innermost dim
      pool_of(Op::avg_pool, {2, 1, 12, 7, 9}, {3, 3, 1}, 1, 0),   // two dims
      pool_of(Op::max_pool, {2, 1, 12, 9, 9}, {3, 1, 1}, 2, 0),   // by two
      pool_of(Op::max_pool, {2, 1, 12, 9, 9}, {3, 1, 1}, 1, 1),   // beyond borders
      pool_of(Op::max_pool, {2, 1, 12, 9, 9}, {11, 1, 1}, 1, 0),  // many
  };
  for (const Graph& graph : graphs) EXPECT_TRUE(same_structure(slice_windows(graph, true), graph));
}

}  // namespace
}  // namespace sylvite::slice_windows_test
