#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "frontend/passes/pass_list.h"
#include "frontend/values/same_bytes.h"
#include "sylvite/graph_text.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::widen_halves_test {
namespace {

/// The element type of the value of that name; f64 when there is none.
DType type_of(const Graph& graph, const std::string& name) {
  const auto found = std::ranges::find(graph.values(), name, &Value::name);
  return found == graph.values().end() ? DType::f64 : found->type.dtype;
}

TEST(WidenHalves, ComputesInF32BetweenTheModelsEdges) {
  const Graph graph = parse_graph(R"(graph g(%x: f16[2,3]) {
    %w = constant f16[3,2] {0.5, -2.0, 3.0, 1.0, 0.25, 4.0}
    %m: f16[2,2] = matmul(%x, %w)
    %r: f16[2,2] = relu(%m)
    %y: f16[4] = reshape(%r) {shape=[4]}
    return %y
  })");
  const Graph wide = widen_halves(graph, DType::f16);
  verify(wide);
  EXPECT_EQ(wide.type(wide.inputs[0]).dtype, DType::f16);
  EXPECT_EQ(wide.type(wide.outputs[0]).dtype, DType::f16);
  EXPECT_EQ(type_of(wide, "m"), DType::f32);
  EXPECT_EQ(type_of(wide, "r"), DType::f32);
  Tensor x(DType::f16, {2, 3});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, static_cast<double>(i) - 2);
  EXPECT_TRUE(same_bytes(interpret(graph, {x})[0], interpret(wide, {x})[0]));
}

TEST(WidenHalves, CachesStayAsTheyAreGiven) {
  const Graph graph = parse_graph(R"(graph g(%past: f16[1,4], %x: f16[1,4]) {
    %n: f16[1,4] = tanh(%x)
    %present: f16[2,4] = concat(%past, %n) {axis=0}
    %s: f16[1,4] = reduce_sum(%present) {axes=[0]}
    return %present, %s
  })");
  const Graph wide = widen_halves(graph, DType::f16);
  verify(wide);
  EXPECT_EQ(type_of(wide, "present"), DType::f16);
  EXPECT_EQ(type_of(wide, "n"), DType::f32);
}

/// A model that casts to f16 may want the rounding; and what is counted must not change by it.
TEST(WidenHalves, RoundsWhereTheModelSaysSoAndAheadOfIntegers) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[3], %h: f16[3]) {
    %a: f16[3] = cast(%x) {to="f16"}
    %b: f32[3] = cast(%a) {to="f32"}
    %c: f16[3] = add(%h, %h)
    %i: i64[3] = cast(%c) {to="i64"}
    return %b, %i
  })");
  const Graph wide = widen_halves(graph, DType::f16);
  verify(wide);
  const Tensor x = reals({3}, {0.1, 2049, 7});
  Tensor h(DType::f16, {3});
  for (std::int64_t i = 0; i < 3; ++i) h.set_double(i, 1024.5 + static_cast<double>(i));
  const std::vector<Tensor> before = interpret(graph, {x, h});
  const std::vector<Tensor> after = interpret(wide, {x, h});
  EXPECT_TRUE(same_bytes(before[0], after[0]));
  EXPECT_TRUE(same_bytes(before[1], after[1]));
}

/// Distances to places of a table as T5 has them: 16 is at an edge between two places.
TEST(WidenHalves, RoundsEachStepAheadOfIntegers) {
  const Graph graph = parse_graph(R"(graph g(%n: i64[120]) {
    %eight = constant f16[] {8}
    %most = constant f16[] {2.7725887}
    %x: f16[120] = cast(%n) {to="f16"}
    %d: f16[120] = div(%x, %eight)
    %l: f16[120] = log(%d)
    %s: f16[120] = div(%l, %most)
    %t: f16[120] = mul(%s, %eight)
    %i: i64[120] = cast(%t) {to="i64"}
    return %i
  })");
  const Graph wide = widen_halves(graph, DType::f16);
  verify(wide);
  EXPECT_EQ(type_of(wide, "t"), DType::f32);
  std::vector<std::int64_t> distances(120);
  std::iota(distances.begin(), distances.end(), 8);
  const Tensor n = Tensor::of(DType::i64, {120}, distances);
  EXPECT_EQ(interpret(wide, {n})[0].to_int64s(), interpret(graph, {n})[0].to_int64s());
}

/// Products of halves by a number of f32: nothing but the result is a half.
TEST(WidenHalves, DropsRoundingsThatNobodyAsksFor) {
  const Graph graph = parse_graph(R"(graph g(%x: f16[50]) {
    %tenth = constant f32[] {0.1}
    %a: f32[50] = cast(%x) {to="f32"}
    %b: f32[50] = mul(%a, %tenth)
    %c: f16[50] = cast(%b) {to="f16", rounds=0}
    %d: f16[50] = add(%c, %c)
    %y: f16[50] = add(%d, %c)
    return %y
  })");
  const Graph wide = widen_halves(graph, DType::f16);
  verify(wide);
  EXPECT_EQ(type_of(wide, "d"), DType::f32);
  Tensor x(DType::f16, {50}), expected(DType::f16, {50});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x.set_double(i, static_cast<double>(i));
    expected.set_double(i, 0.3 * static_cast<double>(i));
  }
  EXPECT_TRUE(same_bytes(interpret(wide, {x})[0], expected));
  EXPECT_FALSE(same_bytes(interpret(graph, {x})[0], expected));
}

}  // namespace
}  // namespace sylvite::widen_halves_test
