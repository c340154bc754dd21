// Fusion on a card: products stay on their templates.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "frontend/ops/op_table.h"
#include "schedules/space.h"
#include "tests/lowering/sample_graphs.h"
#include "tests/schedules/fixed_machines.h"

namespace sylvite::product_templates_test {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

/// A graph of one storage type, and what a card makes of it.
class ProductTemplates : public testing::TestWithParam<DType> {
 protected:
  ProductTemplates() : machine(fixed_machine("h200")) { machine.tf32 = GetParam() == DType::f32; }

  ValueId input(const Dims& dims) {
    return graph.add_input(fmt::format("in{}", graph.inputs.size()), make_type(GetParam(), dims));
  }
  ValueId constant(const Dims& dims) {
    const Tensor values = random_tensor(dims, static_cast<std::uint32_t>(graph.values().size()), 0.5);
    Tensor stored(GetParam(), dims);
    for (std::int64_t i = 0; i < values.size(); ++i) stored.set_double(i, values.as_double(i));
    return graph.add_constant(stored);
  }
  ValueId conv_of(ValueId x, std::int64_t channels, std::int64_t taps = 1, std::int64_t groups = 1) {
    const std::int64_t before = graph.type(x).dims()[1], pad = taps / 2;
    return graph.add(Op::conv, {x, constant({channels, before / groups, taps, taps}), constant({channels})},
                     {{"strides", Dims{1, 1}},
                      {"pads", Dims{pad, pad, pad, pad}},
                      {"dilations", Dims{1, 1}},
                      {"groups", groups}});
  }
  ValueId mul(ValueId a, ValueId b) { return graph.add(Op::mul, {a, b}); }
  ValueId unary(Op op, ValueId x) { return graph.add(op, {x}); }

  /// Each product of the plan as its group's operations and the first space that takes it.
  std::vector<std::string> products(ValueId output) {
    graph.outputs = {output};
    LoweringOptions options;
    options.image_layout = ImageLayout::channels_last;
    options.tf32 = machine.tf32;
    options.refuse_template = [this](const Kernel& kernel) {
      return refuse_product_templates(kernel, machine);
    };
    plan = lower(graph, options);
    std::vector<std::string> result;
    for (const Kernel& kernel : plan.kernels) {
      if (kernel.kind != KernelClass::matmul && kernel.kind != KernelClass::convolution) continue;
      std::string text = spaces_for(kernel, machine).front().name + ":";
      for (const Node& node : kernel.body.nodes()) text += " " + std::string(op_info(node.op).name);
      result.push_back(text);
    }
    return result;
  }
  [[nodiscard]] std::string reasons() const {
    std::string text;
    for (const Launch& launch : plan.launches) text += launch.reason + "\n";
    return text;
  }

  Machine machine;
  Graph graph;
  Plan plan;
};

TEST_P(ProductTemplates, NormAndReluAheadOfAConvolutionAreApart) {
  const ValueId x = conv_of(input({2, 64, 8, 8}), 64);
  const ValueId scaled = graph.add(Op::add, {mul(x, constant({1, 64, 1, 1})), constant({1, 64, 1, 1})});
  const ValueId y = conv_of(unary(Op::relu, scaled), 64);
  EXPECT_THAT(products(graph.add(Op::add, {x, y})),
              UnorderedElementsAre("cuda_conv: conv", "cuda_conv: conv add"));
  if (GetParam() == DType::bf16)
    EXPECT_THAT(reasons(), HasSubstr("without relu, with which no template takes it: its images are"));
}

TEST_P(ProductTemplates, SomeChannelsAreReadInPlace) {
  const ValueId x = unary(Op::relu, conv_of(input({2, 64, 8, 8}), 64));
  const ValueId half =
      graph.add(Op::slice, {x},
                {{"starts", Dims{0, 32, 0, 0}}, {"sizes", Dims{2, 32, 8, 8}}, {"steps", Dims{1, 1, 1, 1}}});
  EXPECT_THAT(
      products(graph.add(Op::add, {conv_of(x, 48), conv_of(half, 48, 3)})),
      UnorderedElementsAre("cuda_conv: conv relu", "cuda_conv: conv",
                           GetParam() == DType::bf16 ? "cuda_conv: slice conv add" : "cuda_conv: conv add"));
}

TEST_P(ProductTemplates, WideGroupsAreProductsOfTheirOwn) {
  EXPECT_THAT(products(unary(Op::relu, conv_of(input({2, 384, 8, 8}), 384, 3, 2))),
              UnorderedElementsAre("cuda_conv: conv relu"));
  graph = {};
  EXPECT_THAT(products(conv_of(input({2, 384, 8, 8}), 288, 1, 4)), UnorderedElementsAre("cuda_conv: conv"));
  graph = {};
  EXPECT_THAT(products(conv_of(input({2, 80, 32, 32}), 80, 9, 2)),
              UnorderedElementsAre("cuda_warps_conv: conv"));
}

TEST_P(ProductTemplates, SingleWarpsTakeWindowsOfFewChannelsWhereTheyShouldCostLess) {
  const char* few = GetParam() == DType::f32 ? "cuda_conv: conv" : "cuda_warps_conv: conv";
  EXPECT_THAT(products(conv_of(input({32, 40, 56, 56}), 40, 3)), UnorderedElementsAre(few));
  for (const std::int64_t channels : {64, 128}) {
    graph = {};
    EXPECT_THAT(products(conv_of(input({32, channels, 56, 56}), channels, 3)),
                UnorderedElementsAre("cuda_conv: conv"));
  }
  graph = {};
  EXPECT_THAT(products(conv_of(input({1, 200, 28, 28}), 200, 3)), UnorderedElementsAre("cuda_conv: conv"))
      << "few tiles, each of many steps";
  graph = {};
  EXPECT_THAT(products(conv_of(input({32, 40, 56, 56}), 40)), UnorderedElementsAre("cuda_conv: conv"))
      << "one tap";
}

TEST_P(ProductTemplates, SingleWarpsTakeLargeNarrowProducts) {
  const auto space_of = [&](std::int64_t rows, std::int64_t depth, std::int64_t columns) {
    graph = {};
    return products(graph.add(Op::matmul, {input({rows, depth}), constant({depth, columns})})).at(0);
  };
  const char* narrow = GetParam() == DType::f32 ? "cuda_matmul: matmul" : "cuda_warps_matmul: matmul";
  EXPECT_EQ(space_of(1 << 17, 16, 16), narrow);
  EXPECT_EQ(space_of(1 << 17, 32, 32), narrow);
  EXPECT_EQ(space_of(1 << 12, 16, 16), "cuda_matmul: matmul") << "a launch takes as long";
  EXPECT_EQ(space_of(1 << 17, 128, 64), "cuda_matmul: matmul");
  EXPECT_EQ(space_of(1 << 17, 32, 256), "cuda_matmul: matmul");
}

TEST_P(ProductTemplates, SqueezeAndExciteScalesAhead) {
  const ValueId x = unary(Op::silu, conv_of(input({2, 64, 8, 8}), 64, 3, 64));
  const ValueId sum = graph.add(Op::reduce_sum, {x}, {{"axes", Dims{2, 3}}});
  const ValueId gate = unary(Op::sigmoid, conv_of(sum, 64));
  EXPECT_THAT(
      products(conv_of(mul(x, gate), 32)),
      UnorderedElementsAre("cuda_depthwise: conv silu", "cuda_conv: conv sigmoid", "cuda_conv: conv"));
}

TEST_P(ProductTemplates, ActivationsAheadJoinTheirProducer) {
  const ValueId first = conv_of(input({2, 64, 8, 8}), 64);
  EXPECT_THAT(products(conv_of(mul(first, unary(Op::sigmoid, first)), 32)),
              UnorderedElementsAre("cuda_conv: conv sigmoid mul", "cuda_conv: conv"));
}

TEST_P(ProductTemplates, ActivationsOfWhatOthersReadAreApart) {
  const ValueId x = conv_of(input({2, 64, 8, 8}), 64);
  const ValueId y = conv_of(mul(x, unary(Op::sigmoid, x)), 64);
  EXPECT_THAT(products(graph.add(Op::add, {x, y})),
              UnorderedElementsAre("cuda_conv: conv", "cuda_conv: conv add"));
}

TEST_P(ProductTemplates, ScalingAheadOfAMatmulIsApart) {
  const ValueId x = input({4, 48, 64});
  const ValueId scaled = mul(x, input({4, 1, 64}));
  EXPECT_THAT(products(graph.add(Op::matmul, {scaled, constant({64, 32})})),
              UnorderedElementsAre("cuda_matmul: matmul"));
}

/// Rows that begin where tensor memory access cannot: the slice is copied. Others are read in place.
TEST_P(ProductTemplates, ViewsStayWhereTheTemplateReadsThem) {
  const auto sliced = [&](std::int64_t start) {
    graph = {};
    const ValueId x = input({4, 48, 80});
    const ValueId part =
        graph.add(Op::slice, {x},
                  {{"starts", Dims{0, 0, start}}, {"sizes", Dims{4, 48, 64}}, {"steps", Dims{1, 1, 1}}});
    return products(graph.add(Op::matmul, {part, constant({64, 32})}));
  };
  EXPECT_THAT(sliced(8), UnorderedElementsAre("cuda_matmul: slice matmul"));
  EXPECT_THAT(sliced(1), UnorderedElementsAre("cuda_matmul: matmul"));
  EXPECT_THAT(reasons(),
              HasSubstr("without slice, with which no template takes it: rows of the left operand"));
}

TEST_P(ProductTemplates, EpiloguesStayOrAreApart) {
  const ValueId x = input({2, 64, 8, 8});
  const ValueId channels = unary(Op::relu, mul(conv_of(x, 64), constant({1, 64, 1, 1})));
  EXPECT_THAT(products(channels), UnorderedElementsAre("cuda_conv: conv mul relu"));
  graph = {};
  const ValueId y = conv_of(input({2, 64, 8, 8}), 64);
  const ValueId by_image = mul(unary(Op::relu, y), input({2, 64, 1, 1}));
  EXPECT_THAT(products(unary(Op::exp, by_image)), UnorderedElementsAre("cuda_conv: conv relu"));
  EXPECT_THAT(reasons(), HasSubstr("without mul, with which no template takes it: an operand of its"));
}

INSTANTIATE_TEST_SUITE_P(Schedules, ProductTemplates, testing::Values(DType::bf16, DType::f16, DType::f32),
                         [](const auto& tested) { return std::string(dtype_name(tested.param)); });

Kernel matmul_of(DType dtype) {
  Graph body;
  const ValueId a = body.add_input("a", make_type(dtype, {64, 64}));
  const ValueId b = body.add_input("b", make_type(dtype, {64, 64}));
  body.outputs = {body.add(Op::matmul, {a, b})};
  return make_kernel(body, {false, true});
}

/// Where CUDA C++ cannot be compiled there is no template to be kept on: rules alone decide.
TEST(RefuseProductTemplates, SaysWhy) {
  Machine machine = fixed_machine("h200");
  for (const int capability : {80, 89, 90, 120}) {
    machine.gpu->capability = capability;
    for (const DType dtype : {DType::f32, DType::bf16})
      EXPECT_EQ(refuse_product_templates(matmul_of(dtype), machine), "") << capability;
  }
  machine.gpu_tools.missing_compiler = "there is no NVRTC";
  machine.gpu->capability = 90;
  EXPECT_THAT(refuse_product_templates(matmul_of(DType::bf16), machine), HasSubstr("NVRTC"));
  machine.gpu_tools.cublaslt = 130100;
  EXPECT_EQ(refuse_product_templates(matmul_of(DType::bf16), machine), "");
  Graph body;
  body.outputs = {body.add(Op::neg, {body.add_input("a", f32({64, 64}))})};
  Kernel kernel = make_kernel(body, {false});
  kernel.kind = KernelClass::ordering;
  EXPECT_EQ(refuse_product_templates(kernel, machine), "there is none for its class");
}

}  // namespace
}  // namespace sylvite::product_templates_test
