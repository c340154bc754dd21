#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "frontend/passes/pass_list.h"
#include "sylvite/graph_text.h"

namespace sylvite::simplify_algebra_test {
namespace {

Graph pool_of(const std::string& shape, const std::string& window) {
  return parse_graph("graph g(%x: f32[2,3,2,4]) { %y: " + shape + " = avg_pool(%x) {count_include_pad=0, " +
                     window + "} return %y }");
}

TEST(SimplifyAlgebra, TakesTheMeanOfWholeMapsWithoutWindows) {
  const Graph before =
      pool_of("f32[2,3,1,1]", "dilations=[1,1], kernel=[2,4], pads=[0,0,0,0], strides=[2,4]");
  const Graph after = simplify_algebra(before);
  EXPECT_TRUE(std::ranges::none_of(after.nodes(), [](const Node& node) { return node.op == Op::avg_pool; }));
  Tensor image(DType::f32, {2, 3, 2, 4});
  for (std::int64_t i = 0; i < image.size(); ++i) image.set_double(i, static_cast<double>(i * 7 % 17));
  const Tensor expected = interpret(before, {image}).front(), actual = interpret(after, {image}).front();
  ASSERT_EQ(actual.dims(), expected.dims());
  for (std::int64_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual.as_double(i), expected.as_double(i), 1e-5);
}

TEST(SimplifyAlgebra, LeavesPoolsThatSeeLessThanTheMapOrItsEdge) {
  for (const char* const window : {"dilations=[1,1], kernel=[2,4], pads=[0,1,0,1], strides=[2,2]",
                                   "dilations=[1,1], kernel=[2,3], pads=[0,0,0,0], strides=[2,1]"}) {
    const Graph graph = pool_of("f32[2,3,1,2]", window);
    EXPECT_EQ(graph_text(simplify_algebra(graph)), graph_text(graph));
  }
}

}  // namespace
}  // namespace sylvite::simplify_algebra_test
