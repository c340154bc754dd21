#include <gmock/gmock.h>

#include "frontend/graph/graph_builder.h"
#include "frontend/onnx/importer.h"
#include "frontend/passes/pass_list.h"
#include "lowering/plan/plan.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::lower_test {
namespace {

TEST(Lower, ResidualNetwork) {
  expect_lowers_faithfully(residual_network());
}

TEST(Lower, Encoder) {
  expect_lowers_faithfully(encoder(2));
}

TEST(Lower, EqualLayersShareKernels) {
  const Plan one = lower(encoder(1));
  const Plan three = lower(encoder(3));
  EXPECT_EQ(three.launches.size(), 3 * one.launches.size());
  EXPECT_LE(three.kernels.size(), one.kernels.size() + 1);
}

/// Convolutions of quantised values, each with a scale and a zero point of its own.
Graph quantised_layers(int count) {
  Graph graph;
  GraphBuilder builder(graph);
  Sym x = builder.input("x", DType::f32, {1, 16, 8, 8});
  for (int layer = 1; layer <= count; ++layer) {
    const Sym scale = builder.scalar(DType::f32, 0.01 * layer), zero = builder.scalar(DType::u8, 100 + layer);
    const Sym steps = builder.add(Op::round, {x, scale, zero}, {{"to", "u8"}});
    const Sym real = (cast(steps, DType::f32) - cast(zero, DType::f32)) * scale;
    x = Sym(builder, conv(graph, real.id(), 16, 1));
  }
  builder.output(x, "y");
  return graph;
}

TEST(Lower, EqualQuantisedLayersShareKernels) {
  const Graph graph = quantised_layers(5);
  const Plan plan = lower(run_passes(graph));
  EXPECT_EQ(plan.kernels.size(), lower(run_passes(quantised_layers(3))).kernels.size());
  const std::vector<Tensor> inputs = {random_tensor({1, 16, 8, 8}, 3)};
  const Tensor expected = interpret(graph, inputs)[0], got = interpret_plan(plan, inputs)[0];
  for (std::int64_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got.as_double(i), expected.as_double(i), 1e-4);
}

Plan lower_model(const std::string& name) {
  ImportOptions options;
  options.random_weights = true;
  return lower(
      run_passes(import_onnx(std::string(SYLVITE_TEST_DATA) + "/models/" + name + ".onnx", options)));
}

TEST(Lower, BertHasTheKernelsOfOneLayer) {
  const Plan plan = lower_model("bert_base");
  // Per layer: merged query, key and value; attention; output; norm; up; down; norm.
  EXPECT_LE(plan.launches.size(), 12 * 7 + 4U);
  EXPECT_LE(plan.kernels.size(), 10U);
}

TEST(Lower, Resnet18IsConvolutions) {
  const Plan plan = lower_model("resnet18");
  // 20 convolutions with their residuals, a pool, the mean, the classifier.
  EXPECT_EQ(plan.launches.size(), 23U);
  EXPECT_LT(plan.arena_bytes, plan.sum_of_values_bytes / 2);
  for (const Launch& launch : plan.launches) {
    const Kernel& kernel = plan.kernels[static_cast<std::size_t>(launch.kernel)];
    EXPECT_TRUE(kernel.kind != KernelClass::pointwise && kernel.kind != KernelClass::movement) << kernel.text;
  }
}

TEST(Lower, OneKernelPerNodeWithoutFusion) {
  LoweringOptions options;
  options.fuse = false;
  options.image_layout = ImageLayout::dense;
  const Graph graph = encoder(1);
  const auto reshapes = std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                      [](const Node& node) { return node.op == Op::reshape; });
  EXPECT_EQ(lower(graph, options).launches.size(), graph.nodes().size() - static_cast<std::size_t>(reshapes));
}

TEST(Lower, OutputsThatNeedNoKernel) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3}));
  const ValueId constant = weight(graph, {3});
  const ValueId sum = graph.add(Op::add, {x, constant});
  const ValueId again = reshape(graph, sum, {6});
  graph.outputs = {x, constant, sum, sum, again, reshape(graph, x, {3, 2}), reshape(graph, constant, {1, 3})};
  expect_lowers_faithfully(graph);
  const Plan plan = lower(graph);
  EXPECT_EQ(plan.launches.size(), 1U);
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(plan.weights.size(), 2U);
}

/// Layers that each read everything before them, as in DenseNet; then two branches side by side, as in
/// SqueezeNet.
Graph dense_block() {
  Graph graph;
  std::vector<ValueId> features = {conv(graph, graph.add_input("image", f32({1, 3, 5, 5})), 32, 3)};
  for (int layer = 0; layer < 3; ++layer) {
    const ValueId all =
        features.size() == 1 ? features[0] : graph.add(Op::concat, features, {{"axis", std::int64_t{1}}});
    const ValueId scaled =
        graph.add(Op::relu, {graph.add(Op::mul, {all, weight(graph, {1, graph.type(all).dims()[1], 1, 1})})});
    features.push_back(conv(graph, scaled, 16, 3));
  }
  const ValueId all = graph.add(Op::concat, features, {{"axis", std::int64_t{1}}});
  const ValueId narrow = graph.add(Op::relu, {conv(graph, all, 16, 1)});
  const std::vector<ValueId> branches = {graph.add(Op::relu, {conv(graph, narrow, 32, 1)}),
                                         graph.add(Op::relu, {conv(graph, narrow, 24, 3)})};
  const ValueId fire = graph.add(Op::concat, branches, {{"axis", std::int64_t{1}}});
  graph.outputs = {graph.add(Op::reduce_sum, {fire}, {{"axes", Dims{2, 3}}})};
  return graph;
}

TEST(Lower, PartsOfAConcatAreWrittenInPlace) {
  const Graph graph = dense_block();
  expect_lowers_faithfully(graph);
  const Plan plan = lower(graph);
  for (const Kernel& kernel : plan.kernels)
    EXPECT_THAT(kernel.text, testing::Not(testing::HasSubstr("concat")));
  LoweringOptions apart;
  apart.join_concats = false;
  EXPECT_EQ(lower(graph, apart).launches.size(), plan.launches.size() + 2) << "the others join their readers";
}

TEST(Lower, ConcatOfBatchesIsCopied) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 16}));
  graph.outputs = {
      graph.add(Op::neg, {graph.add(Op::concat, {graph.add(Op::exp, {x}), graph.add(Op::tanh, {x})},
                                    {{"axis", std::int64_t{1}}})})};
  expect_lowers_faithfully(graph);
}

TEST(Lower, TwoOutputsOfOneNode) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({3, 7}));
  const std::vector<ValueId> top =
      graph.add_node(Op::top_k, {graph.add(Op::neg, {x})}, {{"axis", std::int64_t{1}}, {"k", Dims{2}}});
  graph.outputs = {graph.add(Op::exp, {top[0]}), top[1]};
  expect_lowers_faithfully(graph);
}

TEST(Lower, ScalarBesideAProductOfOneColumn) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({3, 4}));
  graph.outputs = {
      graph.add(Op::add, {graph.add(Op::matmul, {x, weight(graph, {4, 1})}), scalar(graph, 0.5F)})};
  expect_lowers_faithfully(graph);
}

TEST(Lower, PaddedVectorBesideAConvolution) {
  Graph graph;
  const ValueId vector = graph.add_input("vector", f32({5}));
  const ValueId image = graph.add_input("image", f32({1, 16, 4, 4}));
  graph.outputs = {graph.add(Op::pad, {vector}, {{"low", Dims{1}}, {"high", Dims{2}}}),
                   conv(graph, image, 16, 3)};
  expect_lowers_faithfully(graph);
}

TEST(Lower, PlanTextLinesUp) {
  const std::string text = plan_text(lower(encoder(1)));
  EXPECT_THAT(text, testing::StartsWith("plan encoder: "));
  EXPECT_THAT(text, testing::HasSubstr("attention"));
}

}  // namespace
}  // namespace sylvite::lower_test
