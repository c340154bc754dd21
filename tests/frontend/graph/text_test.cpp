#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "frontend/graph/text_lexer.h"
#include "sylvite/graph_text.h"

namespace sylvite::text_test {
namespace {

void expect_round_trip(const std::string& text) {
  EXPECT_EQ(graph_text(parse_graph(text)), text);
}

TEST(Text, RoundTripsAGraph) {
  expect_round_trip(R"(graph net(%x: f32[1,16,4,4], %"a b": i64[N]) {
  %w = constant f32[1] {0.1}
  %v1: f32[1,16,4,4]@c16 = add(%x, %w)
  %v2: f32[1,16,4,1], %v3: i64[1,16,4,1] = top_k(%v1) {axis=3, k=[1], largest=1, ties=0}
  %v4: f32[1,16,4,1] = layer_norm(%v2, _, %w) {axis=3, epsilon=1e-05}
  return %v4, %v3
}
)");
}

TEST(Text, RoundTripsNamesOfAllKinds) {
  expect_round_trip(
      R"(graph "two words\"\\\x0a"(%/layer.1/Conv_output_0: f32[], %"\x7f": f32["odd symbol","1"]) {
  %"ümlaut%": f32[] = relu(%/layer.1/Conv_output_0)
  return %"ümlaut%"
}
)");
}

TEST(Text, RoundTripsAGraphOfNothing) {
  expect_round_trip("graph empty() {\n  return\n}\n");
}

TEST(Text, RoundTripsConstantsOfEveryType) {
  expect_round_trip(R"(graph constants() {
  %a = constant f32[6] {0.1, -0.0, 1e-45, 3.4028235e+38, -inf, nan}
  %b = constant f64[2] {0.1, 5e-324}
  %c = constant f16[3] {65504.0, 5.9604645e-08, nan(fe01)}
  %d = constant bf16[2] {1.0078125, inf}
  %e = constant i8[2] {-128, 127}
  %f = constant u64[1] {18446744073709551615}
  %g = constant i64[1] {-9223372036854775808}
  %h = constant bool[2] {0, 1}
  %i = constant f32[0,4] {}
  %j = constant f32[] {nan(ffc00001)}
  return %a
}
)");
}

TEST(Text, RealsReadBackBitForBit) {
  for (double value : {0.1, 1.0 / 3, 1e308, 5e-324, -0.0, 123456789012345680.0, M_PI, 1e22, 100.0}) {
    const std::string text = real_text(value);
    Lexer lexer(text);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(lexer.real()), std::bit_cast<std::uint64_t>(value));
    EXPECT_NE(text.find_first_of(".e"), std::string::npos) << "must not look like an integer";
  }
  EXPECT_EQ(real_text(1.0), "1.0");
  EXPECT_EQ(real_text(1.0F / 3), "0.33333334");
}

TEST(Text, AttributesKeepTheirKind) {
  const std::string text = R"(graph g(%x: f32[2]) {
  %v1: f32[2] = hard_sigmoid(%x) {alpha=1.0, beta=0.0}
  return %v1
}
)";
  expect_round_trip(text);
  std::string shortened = text;
  shortened.replace(shortened.find("1.0"), 3, "1");
  EXPECT_EQ(parse_graph(shortened).nodes()[0].attributes.real("alpha"), 1.0);
}

TEST(Text, LargeConstantsAreNamedByTheirBytes) {
  Tensor tensor(DType::f32, {17});
  tensor.set_double(3, 2.5);
  Graph graph;
  graph.outputs = {graph.add_constant(tensor, "w")};
  const std::string text = graph_text(graph);
  EXPECT_EQ(text, "graph graph() {\n  %w = constant f32[17] sha256:4a66c4de469cbb78\n  return %w\n}\n");
  EXPECT_THROW((void)parse_graph(text), ModelError);
  const auto find = [&](const TensorType&, const std::string& hash) -> std::optional<Tensor> {
    EXPECT_EQ(hash, "4a66c4de469cbb78");
    return tensor;
  };
  EXPECT_EQ(graph_text(parse_graph(text, find)), text);
  const auto mistake = [](const TensorType&, const std::string&) -> std::optional<Tensor> {
    return Tensor(DType::f32, {3});
  };
  EXPECT_THROW((void)parse_graph(text, mistake), ModelError);
}

TEST(Text, ErrorsNameTheLine) {
  try {
    (void)parse_graph(
        "graph g(%x: f32[2]) {\n  %y: f32[2] = relu(%x)\n  %z: f32[3] = relu(%y)\n  return %z\n}\n");
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_STREQ(error.what(), "line 3: %z is f32[2], not f32[3]");
  }
}

TEST(Text, RefusesMalformedText) {
  const auto refuse = [](const std::string& text) {
    EXPECT_THROW((void)parse_graph(text), ModelError) << text;
  };
  const auto refuse_line = [&](const std::string& line) {
    refuse("graph g(%x: f32[2]) {\n" + line + "\n  return %x\n}\n");
  };
  refuse("");
  refuse("graph");
  refuse("graph g(%x: f32[2]) { return %x");
  refuse("graph g(%x: f32[2]) { return %x } more");
  refuse("graph g(%x: f32[2], %x: f32[2]) { return %x }");
  refuse("graph g(%x: f32[2]) { return %y }");
  refuse("graph g(%x: f99[2]) { return %x }");
  refuse("graph g(%x: f32[-2]) { return %x }");
  refuse("graph g(%x: f32[2) { return %x }");
  refuse("graph g(%x: f32[2]@c16) { return %x }");
  refuse("graph g(%x: f32[2,2]@d16) { return %x }");
  refuse("graph g(%x: f32[\"\"]) { return %x }");
  refuse("graph \"\"(%x: f32[2]) { return %x }");
  refuse("graph \"g(%x: f32[2]) { return %x }");
  refuse("graph \"g\\q\"(%x: f32[2]) { return %x }");
  refuse_line("%y: f32[2] = no_such_op(%x)");
  refuse_line("%y: f32[2] = relu(%x, %x)");
  refuse_line("%y: f32[2] = relu()");
  refuse_line("%y: f32[2] = relu(_)");
  refuse_line("%y: f32[2] = relu(%y)");
  refuse_line("%y: f32[2] = relu(%x) {alpha=1}");
  refuse_line("%x: f32[2] = relu(%x)");
  refuse_line("%y: i32[2] = relu(%x)");
  refuse_line("%y: f32[2], %z: f32[2] = relu(%x)");
  refuse_line("%y: f32[1], %y: i64[1] = top_k(%x) {axis=0, k=[1]}");
  refuse_line("%y: f32[2] = softmax(%x)");
  refuse_line("%y: f32[2] = softmax(%x) {axis=0.5}");
  refuse_line("%y: f32[2] = softmax(%x) {axis=99999999999999999999}");
  refuse_line("%y: f32[2] = softmax(%x) {axis=0");
  refuse_line("%y: f32[2] = gelu(%x) {approximate=none}");
  refuse_line("%y = constant f32[2] {1}");
  refuse_line("%y = constant f32[2] {1, 2, 3}");
  refuse_line("%y = constant f32[1] {x}");
  refuse_line("%y = constant f32[1] {1e999}");
  refuse_line("%y = constant f32[1] {nan(zz)}");
  refuse_line("%y = constant i8[1] {128}");
  refuse_line("%y = constant u8[1] {-1}");
  refuse_line("%y = constant bool[1] {2}");
  refuse_line("%y = constant f32[N] {1}");
  refuse_line("%y = constant f32[4611686018427387904,4611686018427387904] {1}");
  refuse_line("%y = variable f32[1] {1}");
}

TEST(Text, EveryPrefixIsATypedError) {
  const std::string text = R"(graph net(%x: f32[1,16]) {
  %w = constant f32[1] {nan(7fc00001)}
  %"v\x01": f32[1,16]@c16 = layer_norm(%x, _, %w) {axis=1, epsilon=1e-05}
  return %"v\x01"
})";
  expect_round_trip(text + "\n");
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_THROW((void)parse_graph(text.substr(0, size)), ModelError) << size;
}

}  // namespace
}  // namespace sylvite::text_test
