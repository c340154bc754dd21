#include "tests/fuzz/expectation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sylvite/graph_text.h"

namespace sylvite::fuzz::expectation_test {
namespace {

// A fused kernel does not round to f16 in between: erf(x) + 1 is then more exact than the sum of a rounded
// number just above -1. Every element may be so, not only those that happened to get noise.
TEST(Expectation, IntermediateRoundingsMayBeLeftOut) {
  const Graph graph = parse_graph(R"(graph g(%x: f16[4096]) {
    %one = constant f16[] {1.0}
    %erf: f16[4096] = erf(%x)
    %sum: f16[4096] = add(%erf, %one)
    return %sum
  })");
  Tensor x(DType::f16, {4096});
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, -2.4 - static_cast<double>(i) / 8192);
  const Expectation expected = expect(graph, {x});
  Tensor fused(DType::f16, {4096});
  for (std::int64_t i = 0; i < x.size(); ++i) fused.set_double(i, std::erf(x.as_double(i)) + 1);
  EXPECT_EQ(difference({fused}, expected), "");
  fused.set_double(7, 0.05);
  EXPECT_NE(difference({fused}, expected), "");
}

// A kernel may compute erf(x) twice, differently rounded: no element of the difference must be zero.
TEST(Expectation, DifferencesOfOneValueAreNeverExact) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[4096,1]) {
    %count = constant f32[] {1.0}
    %erf: f32[4096,1] = erf(%x)
    %sum: f32[4096,1] = reduce_sum(%erf) {axes=[1], keepdims=1}
    %mean: f32[4096,1] = div(%sum, %count)
    %difference: f32[4096,1] = sub(%erf, %mean)
    return %difference
  })");
  Tensor x(DType::f32, {4096, 1});
  Tensor rounded(DType::f32, {4096, 1});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    x.set_double(i, 1);
    rounded.set_double(i, 0x1p-24);
  }
  EXPECT_EQ(difference({rounded}, expect(graph, {x})), "");
}

// A kernel adds one to an error function that is nearly -1: two elements far below zero may be equal, or in any order.
TEST(Expectation, TailsOfGeluAreDecidedByRoundings) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[4]) {
    %y: f32[4] = gelu(%x) {approximate="none"}
    %most: f32[4], %places: i64[4] = top_k(%y) {axis=0, k=[4], largest=1}
    return %places
  })");
  Tensor x(DType::f32, {4});
  const auto places = [](const Dims& order) {
    Tensor made(DType::i64, {4});
    for (std::size_t i = 0; i < 4; ++i) made.set_int64(static_cast<std::int64_t>(i), order[i]);
    return made;
  };
  std::int64_t next = 0;
  for (const double each : {-1.0, -7.0, 2.0, -15.0}) x.set_double(next++, each);
  const Expectation expected = expect(graph, {x});
  EXPECT_EQ(difference({places({2, 3, 1, 0})}, expected), "");
  EXPECT_EQ(difference({places({2, 1, 3, 0})}, expected), "");
  EXPECT_NE(difference({places({2, 3, 0, 1})}, expected), "");
}

// What a weight that is not finite makes of the padding's zeros is not said by ONNX.
TEST(Expectation, NonFiniteWeightsOverPaddingMayCountOrNot) {
  const Graph graph = parse_graph(R"(graph g(%x: f32[1,1,3,3], %w: f32[1,1,3,3]) {
    %y: f32[1,1,3,3] = conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
    return %y
  })");
  Tensor x(DType::f32, {1, 1, 3, 3});
  Tensor w(DType::f32, {1, 1, 3, 3});
  for (std::int64_t i = 0; i < 9; ++i) {
    x.set_double(i, 1);
    w.set_double(i, 1);
  }
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  w.set_double(0, nan);
  const Expectation expected = expect(graph, {x, w});
  Tensor y(DType::f32, {1, 1, 3, 3});
  for (std::int64_t i = 0; i < 9; ++i) y.set_double(i, nan);
  for (const std::int64_t over_padding : {0, 1, 2, 3, 6}) y.set_double(over_padding, 3);
  EXPECT_EQ(difference({y}, expected), "");
  y.set_double(4, 3);  // reads the weight times a number
  EXPECT_NE(difference({y}, expected), "");
}

}  // namespace
}  // namespace sylvite::fuzz::expectation_test
