#include <gmock/gmock.h>

#include <ostream>

#include "tests/support/bf16_reference.h"

// Templates that multiply bf16 in pairs (AMX has tests of its own), beside the interpreter in f32 on the same
// numbers. Products of bf16 are exact in f32 and are added up in f32, so that only the stored result is
// rounded: by 2^-9 of itself. Attention also rounds its probabilities.

namespace sylvite::bf16_products_test {
namespace {

struct ProductCase {
  const char* space;  ///< the one that default mode must choose
  const char* text;
};
void PrintTo(const ProductCase& one, std::ostream* out) {
  *out << one.space;
}

const ProductCase cases[] =
    {
        {"matmul_panels",
         R"(graph g(%a: bf16[16,24], %w: bf16[24,64], %b: bf16[64]) { %v: bf16[16,64] = matmul(%a, %w) %s: bf16[16,64] = add(%v, %b) %r: bf16[16,64] = gelu(%s) return %r })"},
        {"matmul_panels",
         R"(graph g(%a: bf16[2,7,30], %w: bf16[30,41]) { %v: bf16[2,7,41] = matmul(%a, %w) return %v })"},
        {"matmul_panels",
         R"(graph g(%a: bf16[9,22], %w: bf16[35,22]) { %t: bf16[22,35] = transpose(%w) {perm=[1,0]} %v: bf16[9,35] = matmul(%a, %t) return %v })"},
        {"matmul_panels",
         R"(graph g(%a: bf16[5,12], %w: bf16[12,16]) { %x: bf16[5,12] = relu(%a) %v: bf16[5,16] = matmul(%x, %w) return %v })"},
        {"matmul_panels",
         R"(graph g(%a: bf16[1,64], %w: bf16[64,50]) { %v: bf16[1,50] = matmul(%a, %w) return %v })"},
        {"matmul_activations",
         R"(graph g(%a: bf16[3,9,10], %b: bf16[3,10,37]) { %v: bf16[3,9,37] = matmul(%a, %b) return %v })"},
        {"matmul_activations",
         R"(graph g(%a: bf16[2,20,3,16], %b: bf16[2,18,3,16]) { %q: bf16[2,3,20,16] = transpose(%a) {perm=[0,2,1,3]} %k: bf16[2,3,16,18] = transpose(%b) {perm=[0,2,3,1]} %v: bf16[2,3,20,18] = matmul(%q, %k) return %v })"},
        {"conv_blocked",
         R"(graph g(%x: bf16[1,32,9,13]@c16, %w: bf16[56,32,3,3], %wb: bf16[56], %r: bf16[1,56,9,13]@c16) { %v: bf16[1,56,9,13]@c16 = conv(%x, %w, %wb) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} %s: bf16[1,56,9,13]@c16 = add(%v, %r) %o: bf16[1,56,9,13]@c16 = relu(%s) return %o })"},
        {"conv_blocked",
         R"(graph g(%x: bf16[2,24,7,7]@c16, %w: bf16[40,24,1,1]) { %v: bf16[2,40,4,4]@c16 = conv(%x, %w) {strides=[2,2], pads=[0,0,0,0], dilations=[1,1], groups=1} return %v })"},
        {"conv_blocked",
         R"(graph g(%x: bf16[2,3,20,20], %w: bf16[24,3,7,7], %wb: bf16[24]) { %v: bf16[2,24,10,10]@c16 = conv(%x, %w, %wb) {strides=[2,2], pads=[3,3,3,3], dilations=[1,1], groups=1} return %v })"},
        {"conv_blocked",
         R"(graph g(%x: bf16[1,20,6,6], %w: bf16[16,20,3,3]) { %v: bf16[1,16,6,6]@c16 = conv(%x, %w) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=1} return %v })"},
        {"conv_blocked",
         R"(graph g(%x: bf16[1,3,8,8], %w: bf16[16,3,3,3]) { %v: bf16[1,16,6,6]@c16 = conv(%x, %w) {strides=[1,1], pads=[0,0,0,0], dilations=[1,1], groups=1} return %v })"},
        {"depthwise_blocked",
         R"(graph g(%x: bf16[1,40,9,15]@c16, %w: bf16[40,1,3,3], %wb: bf16[40]) { %v: bf16[1,40,9,15]@c16 = conv(%x, %w, %wb) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=40} %o: bf16[1,40,9,15]@c16 = relu(%v) return %o })"},
        {"depthwise_blocked",
         R"(graph g(%x: bf16[1,40,9,31]@c32, %w: bf16[40,1,3,3], %wb: f32[40], %r: bf16[1,40,9,31]@c32) { %v: bf16[1,40,9,31]@c32 = conv(%x, %w, %wb) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=40} %s: bf16[1,40,9,31]@c32 = add(%v, %r) %o: bf16[1,40,9,31]@c32 = hard_swish(%s) return %o })"},
        {"depthwise_blocked",
         R"(graph g(%x: bf16[2,64,15,15]@c32, %w: bf16[64,1,5,5], %wb: bf16[64]) { %v: bf16[2,64,8,8]@c32 = conv(%x, %w, %wb) {strides=[2,2], pads=[2,2,2,2], dilations=[1,1], groups=64} %o: f32[2,64,8,8]@c32 = cast(%v) {to="f32"} return %o })"},
        {"depthwise_blocked",
         R"(graph g(%x: bf16[1,40,9,31]@c32, %w: f32[40,1,3,3], %wb: f32[40]) { %v: bf16[1,40,9,31]@c32 = conv(%x, %w, %wb) {strides=[1,1], pads=[1,1,1,1], dilations=[1,1], groups=40} %o: bf16[1,40,9,31]@c32 = hard_swish(%v) return %o })"},
        {"depthwise_blocked",
         R"(graph g(%x: bf16[2,64,15,15]@c32, %w: f32[64,1,5,5], %wb: f32[64]) { %v: bf16[2,64,8,8]@c32 = conv(%x, %w, %wb) {strides=[2,2], pads=[2,2,2,2], dilations=[1,1], groups=64} return %v })"},
        {"attention_rows", R"(graph g(%a: bf16[2,23,3,8], %b: bf16[2,37,3,8], %c: bf16[2,37,3,40]) { %q: bf16[2,3,23,8] = transpose(%a) {perm=[0,2,1,3]} %k: bf16[2,3,37,8] = transpose(%b) {perm=[0,2,1,3]} %v: bf16[2,3,37,40] = transpose(%c) {perm=[0,2,1,3]} %r: bf16[2,3,23,40] = attention(%q, %k, %v) {causal=0} return %r })"},
        {"attention_rows",
         R"(graph g(%q: bf16[3,32,16], %k: bf16[3,32,16], %v: bf16[3,32,32]) { %r: bf16[3,32,32] = attention(%q, %k, %v) {causal=1} return %r })"},
};

class Bf16Products : public testing::TestWithParam<ProductCase> {};

TEST_P(Bf16Products, AgreeWithF32) {
  const Kernel kernel = kernel_of(GetParam().text);
  Machine machine = detect_machine(2);
  machine.amx = false;
  if (!machine.bf16_products) GTEST_SKIP() << "the processor has no products of bf16";
  const BoundSpace space = spaces_for(kernel, machine).front();
  ASSERT_EQ(space.name, GetParam().space);
  std::vector<Point> points = {space.heuristic};
  for (const Parameter& parameter : space.parameters)
    points.push_back(point_with(space, {{parameter.name, parameter.values.back()}}));
  EXPECT_GT(expect_as_in_f32(GetParam().text, space, points), 0U);
}
INSTANTIATE_TEST_SUITE_P(All, Bf16Products, testing::ValuesIn(cases));

TEST(Bf16Products, RefuseWithAReason) {
  Machine machine = detect_machine(1);
  const auto refusal = [&](const char* text) -> std::string {
    std::vector<Refusal> refusals;
    (void)spaces_for(kernel_of(text), machine, &refusals);
    for (const Refusal& each : refusals)
      if (each.space == "matmul_panels") return each.reason;
    return "";
  };
  machine.bf16_products = true;
  EXPECT_EQ(refusal("graph g(%a: bf16[4,7], %w: bf16[7,16]) { %v: bf16[4,16] = matmul(%a, %w) return %v }"),
            "its k = 7 is no multiple of 2: so many bf16 are multiplied at once");
  EXPECT_THAT(refusal("graph g(%a: f16[4,8], %w: f16[8,16]) { %v: f16[4,16] = matmul(%a, %w) return %v }"),
              testing::HasSubstr("is f16, the template takes f32 or bf16"));
  machine.bf16_products = false;
  EXPECT_EQ(refusal("graph g(%a: bf16[4,8], %w: bf16[8,16]) { %v: bf16[4,16] = matmul(%a, %w) return %v }"),
            "the processor has no products of bf16");
}

// A view of bf16 copies bits: a NaN keeps its payload, and nothing is rounded.
TEST(Bf16Products, ViewsCopyBits) {
  const Kernel kernel = kernel_of(
      "graph g(%a: bf16[3,5]) { %t: bf16[5,3] = transpose(%a) {perm=[1,0]} %v: bf16[4,3] = slice(%t) "
      "{starts=[1,0], steps=[1,1], sizes=[4,3]} return %v }");
  check_candidate(kernel, default_candidate(kernel, detect_machine(1)), {}, 0);
}

}  // namespace
}  // namespace sylvite::bf16_products_test
