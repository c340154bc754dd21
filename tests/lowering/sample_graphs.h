#pragma once
// Small graphs with the shapes of real models, for tests of lowering.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "frontend/graph/interpreter.h"
#include "frontend/ops/op_table.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_interpreter.h"
#include "sylvite/graph.h"

namespace sylvite {

inline Tensor random_tensor(const Dims& dims, std::uint32_t seed, double scale = 1) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> distribution(-scale, scale);
  Tensor tensor(DType::f32, dims);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set_double(i, distribution(generator));
  return tensor;
}

inline TensorType f32(const Dims& dims) {
  return make_type(DType::f32, dims);
}

inline ValueId weight(Graph& graph, const Dims& dims, std::uint32_t seed = 1) {
  return graph.add_constant(random_tensor(dims, seed, 0.5));
}

inline ValueId scalar(Graph& graph, float value) {
  return graph.add_constant(Tensor::scalar_f32(value));
}

inline ValueId conv(Graph& graph, ValueId x, std::int64_t channels, std::int64_t size,
                    std::int64_t groups = 1, const std::string& name = "") {
  const std::int64_t before = graph.type(x).dims()[1];
  const std::int64_t pad = size / 2;
  const auto seed = static_cast<std::uint32_t>(graph.values().size());
  return graph.add(
      Op::conv,
      {x, weight(graph, {channels, before / groups, size, size}, seed), weight(graph, {channels}, seed + 1)},
      {{"strides", Dims{1, 1}},
       {"pads", Dims{pad, pad, pad, pad}},
       {"dilations", Dims{1, 1}},
       {"groups", groups}},
      name);
}

inline ValueId dense(Graph& graph, ValueId x, std::int64_t width, const std::string& name = "") {
  const auto seed = static_cast<std::uint32_t>(graph.values().size());
  const ValueId product =
      graph.add(Op::matmul, {x, weight(graph, {graph.type(x).dims().back(), width}, seed)}, {}, name);
  return graph.add(Op::add, {product, weight(graph, {width}, seed + 1)});
}

inline ValueId reshape(Graph& graph, ValueId x, const Dims& dims) {
  return graph.add(Op::reshape, {x}, {{"shape", dims}});
}

inline ValueId transpose(Graph& graph, ValueId x, const Dims& perm) {
  return graph.add(Op::transpose, {x}, {{"perm", perm}});
}

/// image -> conv relu -> residual block with squeeze-and-excite -> mean -> dense, as in ResNet and MobileNet.
inline Graph residual_network() {
  Graph graph;
  graph.name = "residual";
  const ValueId image = graph.add_input("image", f32({1, 3, 8, 8}));
  const ValueId stem = graph.add(Op::relu, {conv(graph, image, 24, 3, 1, "stem")});
  const ValueId wide = graph.add(Op::hard_swish, {conv(graph, stem, 40, 1, 1, "expand")});
  const ValueId deep = graph.add(Op::relu, {conv(graph, wide, 40, 3, 40, "depthwise")});
  const ValueId sum = graph.add(Op::reduce_sum, {deep}, {{"axes", Dims{2, 3}}});
  const ValueId mean = graph.add(Op::mul, {sum, scalar(graph, 1.F / 64)});
  const ValueId squeezed = graph.add(Op::relu, {conv(graph, mean, 8, 1, 1, "squeeze")});
  const ValueId gate = graph.add(Op::hard_sigmoid, {conv(graph, squeezed, 40, 1, 1, "excite")});
  const ValueId gated = graph.add(Op::mul, {deep, gate});
  const ValueId block =
      graph.add(Op::relu, {graph.add(Op::add, {stem, conv(graph, gated, 24, 1, 1, "project")})});
  const ValueId total =
      graph.add(Op::reduce_sum, {block}, {{"axes", Dims{2, 3}}, {"keepdims", std::int64_t{0}}});
  const ValueId pooled = graph.add(Op::mul, {total, scalar(graph, 1.F / 64)});
  graph.outputs = {dense(graph, pooled, 10, "classify")};
  return graph;
}

/// One post-norm encoder layer, as in BERT, appended to the graph.
inline ValueId encoder_layer(Graph& graph, ValueId x, ValueId mask) {
  const Dims dims = graph.type(x).dims();
  const std::int64_t heads = 2;
  auto split = [&](ValueId id) {
    return transpose(graph, reshape(graph, id, {dims[0], dims[1], heads, dims[2] / heads}), {0, 2, 1, 3});
  };
  const ValueId q = split(dense(graph, x, dims[2], "query"));
  const ValueId k = split(dense(graph, x, dims[2], "key"));
  const ValueId v = split(dense(graph, x, dims[2], "value"));
  const ValueId attended = graph.add(Op::attention, {q, k, v, mask});
  const ValueId merged = reshape(graph, transpose(graph, attended, {0, 2, 1, 3}), dims);
  auto norm = [&](ValueId id) {
    return graph.add(Op::layer_norm, {id, weight(graph, {dims[2]}), weight(graph, {dims[2]}, 2)},
                     {{"axis", std::int64_t{2}}});
  };
  const ValueId first = norm(graph.add(Op::add, {dense(graph, merged, dims[2], "output"), x}));
  const ValueId hidden = graph.add(Op::gelu, {dense(graph, first, 4 * dims[2], "up")});
  return norm(graph.add(Op::add, {dense(graph, hidden, dims[2], "down"), first}));
}

inline Graph encoder(int layers) {
  Graph graph;
  graph.name = "encoder";
  const ValueId x = graph.add_input("x", f32({1, 6, 8}));
  const ValueId mask = graph.add_input("mask", f32({1, 1, 1, 6}));
  ValueId value = x;
  for (int i = 0; i < layers; ++i) value = encoder_layer(graph, value, mask);
  graph.outputs = {value};
  return graph;
}

inline std::vector<Tensor> random_inputs(const Graph& graph) {
  std::vector<Tensor> inputs;
  inputs.reserve(graph.inputs.size());
  for (ValueId id : graph.inputs) {
    const TensorType& type = graph.type(id);
    const Tensor numbers = random_tensor(type.dims(), 100 + static_cast<std::uint32_t>(id));
    Tensor& input = inputs.emplace_back(type.dtype, type.dims());
    for (std::int64_t i = 0; i < input.size(); ++i) input.set_double(i, numbers.as_double(i));
  }
  return inputs;
}

inline void expect_close(const Tensor& actual, const Tensor& expected, double tolerance = 1e-4) {
  ASSERT_EQ(actual.dims(), expected.dims());
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    const double wanted = expected.as_double(i);
    ASSERT_NEAR(actual.as_double(i), wanted, tolerance * std::max(1.0, std::abs(wanted))) << "element " << i;
  }
}

/// As for tensor cores.
inline LoweringOptions channels_last() {
  LoweringOptions options;
  options.image_layout = ImageLayout::channels_last;
  return options;
}

/// A plan computes what its graph does, unless told otherwise as near as bf16 values do.
inline void expect_faithful(const Graph& graph, const Plan& plan, double tolerance = 5e-2) {
  const std::vector<Tensor> inputs = random_inputs(graph);
  const std::vector<Tensor> wanted = interpret(graph, inputs), got = interpret_plan(plan, inputs);
  ASSERT_EQ(wanted.size(), got.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(wanted[i].dims(), got[i].dims()) << "output " << i;
    for (std::int64_t k = 0; k < wanted[i].size(); ++k)
      ASSERT_NEAR(wanted[i].as_double(k), got[i].as_double(k), tolerance) << "output " << i << " at " << k;
  }
}

/// The options under which a plan must compute what its graph computes.
inline std::vector<LoweringOptions> all_options() {
  std::vector<LoweringOptions> result;
  for (const bool fuse : {false, true}) {
    for (const ImageLayout layout : {ImageLayout::dense, ImageLayout::channel_blocks}) {
      LoweringOptions options;
      options.fuse = fuse;
      options.image_layout = layout;
      result.push_back(options);
    }
  }
  LoweringOptions by_rows;
  by_rows.large_bytes = 1;
  result.push_back(by_rows);
  LoweringOptions small_templates;
  small_templates.refuse_template = [](const Kernel& kernel) {
    return kernel.body.nodes().size() > 2 ? "it is large" : "";
  };
  result.push_back(small_templates);
  LoweringOptions innermost = channels_last();
  innermost.tf32 = true;  // of f32, too
  result.push_back(innermost);
  return result;
}

inline void expect_lowers_faithfully(const Graph& graph) {
  const std::vector<Tensor> inputs = random_inputs(graph);
  const std::vector<Tensor> expected = interpret(graph, inputs);
  for (const LoweringOptions& options : all_options()) {
    SCOPED_TRACE(std::string(options.fuse ? "fused" : "one by one") +
                 (options.image_layout == ImageLayout::dense           ? ", dense"
                  : options.image_layout == ImageLayout::channels_last ? ", channels last"
                                                                       : ", blocked") +
                 (options.large_bytes > 0 ? ", by rows" : ""));
    const std::vector<Tensor> actual = interpret_plan(lower(graph, options), inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) expect_close(actual[i], expected[i]);
  }
}

/// Two blocks as ConvNeXt has them: a depthwise convolution of images, then rows of channels, and back.
inline Graph metaformer_blocks() {
  Graph graph;
  graph.name = "metaformer_blocks";
  constexpr std::int64_t width = 16;
  ValueId x = conv(graph, graph.add_input("image", f32({2, 8, 6, 5})), width, 3);
  for (int i = 0; i < 2; ++i) {
    const ValueId rows = transpose(graph, conv(graph, x, width, 3, width), {0, 2, 3, 1});
    const ValueId normal =
        graph.add(Op::layer_norm, {rows, weight(graph, {width}), weight(graph, {width}, 2)},
                  {{"axis", std::int64_t{3}}, {"epsilon", 1e-5}});
    const ValueId wide = graph.add(Op::relu, {dense(graph, normal, 2 * width)});
    const ValueId back = transpose(graph, dense(graph, wide, width), {0, 3, 1, 2});
    x = graph.add(Op::add, {graph.add(Op::mul, {back, weight(graph, {width, 1, 1}, 3)}), x});
  }
  graph.outputs = {x};
  return graph;
}

/// The dims of what each fold takes.
inline std::vector<Dims> folds_in(const Graph& graph) {
  std::vector<Dims> dims;
  for (const Node& node : graph.nodes())
    if (has_trait(node.op, OpTrait::reduction)) dims.push_back(graph.type(node.inputs[0]).dims());
  return dims;
}

/// Per launch of the graph's plan, how many outputs its kernel has.
inline std::vector<std::size_t> outputs_of_launches(const Graph& graph, const LoweringOptions& options) {
  const Plan plan = lower(graph, options);
  std::vector<std::size_t> result;
  result.reserve(plan.launches.size());
  for (const Launch& launch : plan.launches)
    result.push_back(plan.kernels.at(static_cast<std::size_t>(launch.kernel)).body.outputs.size());
  return result;
}

}  // namespace sylvite
