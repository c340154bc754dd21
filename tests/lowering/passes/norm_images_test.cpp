#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/rewrite.h"
#include "frontend/passes/store_narrow.h"
#include "lowering/passes/norm_groups.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::norm_images_test {
namespace {

/// A convolution, a group normalisation with scales and shifts, and another convolution.
Graph normalized_image(std::int64_t groups) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), 16, 3);
  const ValueId rows =
      graph.add(Op::reshape, {x}, {{"shape", Dims{2, groups, std::int64_t{16} * 30 / groups}}});
  const ValueId norm = graph.add(Op::layer_norm, {rows}, {{"axis", std::int64_t{2}}, {"epsilon", 1e-5}});
  ValueId y = graph.add(Op::reshape, {norm}, {{"shape", Dims{2, 16, 5, 6}}});
  y = graph.add(Op::mul, {y, weight(graph, {1, 16, 1, 1}, 2)});
  y = graph.add(Op::relu, {graph.add(Op::add, {y, weight(graph, {1, 16, 1, 1}, 3)})});
  graph.outputs = {conv(graph, y, 8, 1)};
  return graph;
}

/// For a device that takes every kernel.
LoweringOptions with_template() {
  LoweringOptions options = channels_last();
  options.tf32 = true;
  options.refuse_template = [](const Kernel&) { return std::string(); };
  return options;
}

TEST(NormImages, GroupsOfChannelsGiveTheSame) {
  for (const std::int64_t groups : {1, 4, 16}) {
    const Graph graph = normalized_image(groups), changed = norm_groups(graph, with_template());
    EXPECT_EQ(std::ranges::count_if(changed.nodes(),
                                    [](const Node& node) {
                                      return node.op == Op::layer_norm && node.attributes.has("groups");
                                    }),
              1);
    const std::vector<Tensor> inputs = random_inputs(graph);
    const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(changed, inputs).at(0);
    for (std::int64_t k = 0; k < wanted.size(); ++k) ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-5);
  }
}

TEST(NormImages, SomeChannelsOfAnImageAreOne) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), 16, 3);
  const ValueId half = graph.add(
      Op::slice, {x}, {{"starts", Dims{0, 8, 0, 0}}, {"sizes", Dims{2, 8, 5, 6}}, {"steps", Dims(4, 1)}});
  graph.outputs = {graph.add(Op::layer_norm, {half}, {{"axis", std::int64_t{2}}, {"epsilon", 1e-5}})};
  const Graph changed = norm_groups(graph, with_template());
  EXPECT_TRUE(
      std::ranges::any_of(changed.nodes(), [](const Node& node) { return node.attributes.has("groups"); }));
  const std::vector<Tensor> inputs = random_inputs(graph);
  const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(changed, inputs).at(0);
  for (std::int64_t k = 0; k < wanted.size(); ++k) ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-5);
}

TEST(NormImages, LargeImagesOfWhichThereAreFewAreNotNormedByOneKernel) {
  Graph graph;
  const Dims dims = {1, 16, 160, 128};
  const ValueId x = graph.add_input("x", make_type(DType::f32, dims));
  const ValueId image = conv(graph, x, 16, 1);
  const ValueId norm = graph.add(Op::layer_norm, {image}, {{"axis", std::int64_t{2}}, {"epsilon", 1e-5}});
  graph.outputs = {conv(graph, norm, 8, 1)};
  EXPECT_TRUE(same_structure(norm_groups(graph, with_template()), graph));
  const Graph changed = norm_images(graph, true);
  EXPECT_TRUE(
      std::ranges::none_of(changed.nodes(), [](const Node& node) { return node.op == Op::layer_norm; }));
}

TEST(NormImages, AKernelNormsGroups) {
  const Graph graph = store_narrow(normalized_image(4), DType::bf16);
  LoweringOptions options = channels_last();
  options.refuse_template = [](const Kernel& kernel) {
    return kernel.kind == KernelClass::reduction ? "no reduction" : "";
  };
  const Plan plan = lower(graph, options);
  EXPECT_EQ(std::ranges::count_if(
                plan.kernels, [](const Kernel& kernel) { return kernel.kind == KernelClass::normalization; }),
            1);
  EXPECT_LE(plan.launches.size(), 5U) << plan_text(plan);
  expect_faithful(graph, plan);
}

TEST(NormImages, SumsOverPixelsGiveTheSame) {
  for (const std::int64_t groups : {1, 4, 16}) {
    const Graph graph = normalized_image(groups), changed = norm_images(graph, true);
    EXPECT_TRUE(
        std::ranges::none_of(changed.nodes(), [](const Node& node) { return node.op == Op::layer_norm; }));
    const std::vector<Tensor> inputs = random_inputs(graph);
    const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(changed, inputs).at(0);
    for (std::int64_t k = 0; k < wanted.size(); ++k) ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-4);
  }
}

TEST(NormImages, NothingChangesItsLayout) {
  const Graph graph = store_narrow(normalized_image(4), DType::bf16);
  const Plan plan = lower(graph, channels_last());
  const auto changes = [&](const Launch& launch) {
    const Graph& body = plan.kernels[static_cast<std::size_t>(launch.kernel)].body;
    return std::ranges::any_of(body.nodes(), [](const Node& node) { return node.op == Op::to_layout; });
  };
  EXPECT_LE(std::ranges::count_if(plan.launches, changes), 4)
      << plan_text(plan);  // two of one pixel an image
  expect_faithful(graph, plan);
}

TEST(NormImages, PixelsOfEachChannelAreSummed) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), 16, 3);
  const ValueId norm = graph.add(Op::layer_norm, {x}, {{"axis", std::int64_t{2}}, {"epsilon", 1e-5}});
  graph.outputs = {conv(graph, graph.add(Op::relu, {norm}), 8, 1)};
  const Graph changed = norm_images(graph, true);
  EXPECT_TRUE(
      std::ranges::none_of(changed.nodes(), [](const Node& node) { return node.op == Op::layer_norm; }));
  const std::vector<Tensor> inputs = random_inputs(graph);
  const Tensor wanted = interpret(graph, inputs).at(0), got = interpret(changed, inputs).at(0);
  for (std::int64_t k = 0; k < wanted.size(); ++k) ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-4);
}

TEST(NormImages, RootsOfMeanSquaresOverPixelsAreSums) {
  for (const std::int64_t groups : {0, 4, 16}) {
    Graph graph;
    ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), 16, 3);
    if (groups != 0) x = reshape(graph, x, {2, groups, 16 * 30 / groups});
    ValueId norm = graph.add(Op::rms_norm, {x}, {{"axis", std::int64_t{2}}, {"epsilon", 1e-5}});
    if (groups != 0) norm = reshape(graph, norm, {2, 16, 5, 6});
    graph.outputs = {conv(graph, graph.add(Op::relu, {norm}), 8, 1)};
    EXPECT_TRUE(same_structure(norm_groups(graph, with_template()), graph));
    const Graph changed = norm_images(graph, true);
    EXPECT_TRUE(
        std::ranges::none_of(changed.nodes(), [](const Node& node) { return node.op == Op::rms_norm; }));
    const std::vector<Tensor> inputs = random_inputs(graph);
    expect_close(interpret(changed, inputs).at(0), interpret(graph, inputs).at(0));
    const Graph narrow = store_narrow(graph, DType::bf16);
    expect_faithful(narrow, lower(narrow, channels_last()));
  }
}

TEST(NormImages, RowsAreLeftAlone) {
  Graph graph;
  const ValueId x = conv(graph, graph.add_input("x", f32({2, 8, 5, 6})), 16, 3);
  const ValueId lines = graph.add(Op::layer_norm, {x}, {{"axis", std::int64_t{3}}, {"epsilon", 1e-5}});
  graph.outputs = {conv(graph, lines, 8, 1)};
  EXPECT_TRUE(same_structure(norm_images(graph, true), graph));
}

}  // namespace
}  // namespace sylvite::norm_images_test
