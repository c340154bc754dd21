#include "frontend/graph_builder.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/interpreter.h"
#include "frontend/text.h"
#include "frontend/verifier.h"

namespace sylvite {
namespace {

TEST(GraphBuilder, WritesExpressions) {
  GraphBuilder builder("net");
  const Var x = builder.input("x", DType::f32, {1, 1, 4, 4});
  const Var w = builder.constant(Tensor(DType::f32, {2, 1, 3, 3}), "w");
  const Var y = relu(conv(x, w, {.pads = {1, 1, 1, 1}}) + 1.0);
  builder.output(pool(Op::max_pool, 2.0 * y, {2, 2}, {.strides = {2, 2}}), "out");
  const Graph graph = builder.finish();
  verify(graph);
  EXPECT_EQ(graph_text(graph), R"(graph net(%x: f32[1,1,4,4]) {
  %w = constant f32[2,1,3,3] sha256:834a709ba2534ebe
  %v3 = constant f32[] {1.0}
  %v6 = constant f32[] {2.0}
  %v2: f32[1,2,4,4] = conv(%x, %w) {dilations=[1,1], groups=1, pads=[1,1,1,1], strides=[1,1]}
  %v4: f32[1,2,4,4] = add(%v2, %v3)
  %v5: f32[1,2,4,4] = relu(%v4)
  %v7: f32[1,2,4,4] = mul(%v6, %v5)
  %out: f32[1,2,2,2] = max_pool(%v7) {dilations=[1,1], kernel=[2,2], pads=[0,0,0,0], strides=[2,2]}
  return %out
}
)");
  const Tensor result = interpret(graph, {Tensor(DType::f32, {1, 1, 4, 4})}).at(0);
  for (std::int64_t i = 0; i < result.size(); ++i) EXPECT_EQ(result.as_double(i), 2.0);
}

TEST(GraphBuilder, RefusesValuesOfTwoBuilders) {
  GraphBuilder one;
  GraphBuilder two;
  const Var x = one.input("x", DType::f32, {1});
  const Var y = two.input("y", DType::f32, {1});
  EXPECT_THROW((void)(x + y), UsageError);
  EXPECT_THROW((void)relu(Var{}), UsageError);
}

}  // namespace
}  // namespace sylvite
