#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"

namespace sylvite::divide_gradients_test {
namespace {

Graph gradient(std::int64_t channels, std::int64_t groups, std::int64_t extent) {
  Graph graph;
  const TensorType type = make_type(DType::bf16, {4, channels, extent, extent});
  const ValueId of = graph.add_input("g", type), x = graph.add_input("x", type);
  graph.outputs = {graph.add(Op::filter_gradient, {of, x},
                             {{"kernel", Dims{3, 3}},
                              {"strides", Dims{1, 1}},
                              {"pads", Dims{1, 1, 1, 1}},
                              {"dilations", Dims{1, 1}},
                              {"groups", groups}})};
  return graph;
}

TEST(DivideGradients, KeepsTheResult) {
  for (const std::int64_t groups : {1, 8}) {
    const Graph whole = gradient(8, groups, 24), divided = divide_gradients(whole, {});
    ASSERT_EQ(divided.nodes().size(), 2U);
    EXPECT_GT(divided.nodes()[0].attributes.integer("parts"), 1);
    std::vector<Tensor> inputs;
    for (const ValueId id : whole.inputs) {
      Tensor& input = inputs.emplace_back(whole.type(id).dtype, whole.type(id).dims());
      for (std::int64_t i = 0; i < input.size(); ++i)
        input.set_double(i, static_cast<double>(i * 7 % 11) - 5);
    }
    const Tensor wanted = interpret(whole, inputs).at(0), got = interpret(divided, inputs).at(0);
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got.as_double(i));
  }
}

TEST(DivideGradients, DividesJoinedLinesAmongAllBlocks) {
  Graph graph;
  const ValueId of = graph.add_input("g", make_type(DType::bf16, {8, 64, 112, 112}));
  const ValueId x = graph.add_input("x", make_type(DType::bf16, {8, 4, 229, 230}));
  graph.outputs = {graph.add(Op::filter_gradient, {of, x},
                             {{"kernel", Dims{7, 8}},
                              {"strides", Dims{2, 2}},
                              {"pads", Dims{0, 0, 0, 0}},
                              {"dilations", Dims{1, 1}},
                              {"joined", std::int64_t{1}}})};
  EXPECT_EQ(divide_gradients(graph, {}).nodes()[0].attributes.integer("parts"), 8 * 112 * 112 / 512);
}

/// So that they are one kernel at all of them.
TEST(DivideGradients, AsManyPartsAtAllSizesThatAreOpen) {
  const auto parts_at = [](std::int64_t extent, bool open_sizes) {
    LoweringOptions options;
    options.open_sizes = open_sizes;
    const Graph divided = divide_gradients(gradient(8, 8, extent), options);
    return divided.nodes().at(0).attributes.integer("parts");
  };
  EXPECT_LT(parts_at(24, false), parts_at(64, false));
  EXPECT_EQ(parts_at(24, true), parts_at(64, true));
}

TEST(DivideGradients, LeavesManyResultsAndFewPixels) {
  for (const Graph& graph : {gradient(256, 1, 24), gradient(8, 1, 8)})
    EXPECT_TRUE(same_structure(divide_gradients(graph, {}), graph));
}

}  // namespace
}  // namespace sylvite::divide_gradients_test
