#include "lowering/plan/kernel.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::kernel_test {
namespace {

using testing::HasSubstr;

Graph biased_matmul(const std::string& prefix) {
  Graph body;
  const ValueId a = body.add_input(prefix + "a", f32({4, 8}));
  const ValueId b = body.add_input(prefix + "b", f32({8, 16}));
  const ValueId bias = body.add_input(prefix + "bias", f32({16}));
  const ValueId product = body.add(Op::matmul, {a, b}, {}, prefix + "product");
  const ValueId scaled = body.add(Op::mul, {body.add(Op::add, {product, bias}), scalar(body, 0.5F)});
  body.outputs = {scaled};
  return body;
}

TEST(Kernel, NamesAreCanonical) {
  const Kernel one = make_kernel(biased_matmul("one_"), {false, true, true});
  const Kernel two = make_kernel(biased_matmul("v1"), {false, true, true});
  EXPECT_EQ(one.text, two.text);
  EXPECT_EQ(one.id, two.id);
  EXPECT_EQ(one.kind, KernelClass::matmul);
  EXPECT_EQ(one.anchor, 0);
  EXPECT_EQ(one.text,
            "graph kernel(%in0: f32[4,8], %in1: f32[8,16], %in2: f32[16]) {\n"
            "  %c0 = constant f32[] {0.5}\n"
            "  %v0: f32[4,16] = matmul(%in0, %in1)\n"
            "  %v1: f32[4,16] = add(%v0, %in2)\n"
            "  %v2: f32[4,16] = mul(%v1, %c0)\n"
            "  return %v2\n"
            "}\n"
            "weights: in1 in2\n");
}

TEST(Kernel, WeightMarksArePartOfIdentity) {
  EXPECT_NE(make_kernel(biased_matmul(""), {false, true, true}).id,
            make_kernel(biased_matmul(""), {false, false, true}).id);
}

TEST(Kernel, TextReadsBack) {
  const Kernel kernel = make_kernel(biased_matmul(""), {false, true, true});
  const Kernel again = parse_kernel(kernel.text);
  EXPECT_EQ(again.text, kernel.text);
  EXPECT_EQ(again.input_is_weight, kernel.input_is_weight);
  EXPECT_EQ(again.kind, kernel.kind);
}

TEST(Kernel, BlockedTypesReadBack) {
  Graph body;
  TensorType type = f32({1, 24, 4, 4});
  type.layout.channel_block = 16;
  const ValueId x = body.add_input("x", type);
  const ValueId w = body.add_input("w", f32({8, 24, 1, 1}));
  const ValueId y = body.add(
      Op::conv, {x, w}, {{"strides", Dims{1, 1}}, {"pads", Dims{0, 0, 0, 0}}, {"dilations", Dims{1, 1}}});
  body.value(y).type.layout.channel_block = 16;
  body.outputs = {body.add(Op::relu, {y})};
  body.value(body.outputs[0]).type.layout.channel_block = 16;
  const Kernel kernel = make_kernel(body, {false, true});
  EXPECT_THAT(kernel.text, HasSubstr("f32[1,8,4,4]@c16 = relu"));
  EXPECT_EQ(parse_kernel(kernel.text).text, kernel.text);
}

TEST(Kernel, DenseInputAndBlockedOutputReadBack) {
  Graph body;
  const ValueId x = body.add_input("x", f32({1, 3, 4, 4}));
  const ValueId w = body.add_input("w", f32({8, 3, 1, 1}));
  const ValueId y = body.add(
      Op::conv, {x, w}, {{"strides", Dims{1, 1}}, {"pads", Dims{0, 0, 0, 0}}, {"dilations", Dims{1, 1}}});
  body.value(y).type.layout.channel_block = 16;
  body.outputs = {y};
  const Kernel kernel = make_kernel(body, {false, true});
  EXPECT_EQ(parse_kernel(kernel.text).text, kernel.text);
}

TEST(Kernel, ClassFollowsTheAnchor) {
  auto kind_of = [](Op op, const std::vector<Dims>& shapes, Attributes attributes) {
    Graph body;
    std::vector<ValueId> inputs;
    inputs.reserve(shapes.size());
    for (const Dims& dims : shapes) inputs.push_back(body.add_input("", f32(dims)));
    body.outputs = body.add_node(op, inputs, std::move(attributes));
    return make_kernel(body, std::vector<bool>(shapes.size(), false)).kind;
  };
  EXPECT_EQ(kind_of(Op::exp, {{4}}, {}), KernelClass::pointwise);
  EXPECT_EQ(kind_of(Op::softmax, {{4}}, {{"axis", std::int64_t{0}}}), KernelClass::normalization);
  EXPECT_EQ(kind_of(Op::reduce_sum, {{4}}, {{"axes", Dims{0}}}), KernelClass::reduction);
  EXPECT_EQ(kind_of(Op::cumsum, {{4}}, {{"axis", std::int64_t{0}}}), KernelClass::scan);
  EXPECT_EQ(kind_of(Op::top_k, {{4}}, {{"axis", std::int64_t{0}}, {"k", Dims{2}}}), KernelClass::ordering);
  EXPECT_EQ(kind_of(Op::transpose, {{4, 2}}, {{"perm", Dims{1, 0}}}), KernelClass::movement);
  EXPECT_EQ(kind_of(Op::concat, {{4}, {4}}, {{"axis", std::int64_t{0}}}), KernelClass::movement);
  EXPECT_EQ(kind_of(Op::attention, {{1, 4, 2}, {1, 4, 2}, {1, 4, 2}}, {}), KernelClass::attention);
}

TEST(Kernel, ForeignTextIsRefused) {
  EXPECT_THROW((void)parse_kernel("nonsense"), ModelError);
  EXPECT_THROW((void)parse_kernel(make_kernel(biased_matmul(""), {false, true, true}).text + " in7"),
               ModelError);
}

}  // namespace
}  // namespace sylvite::kernel_test
