#include "frontend/graph/interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "frontend/graph/verifier.h"

namespace sylvite::interpreter_test {
namespace {

using testing::ElementsAre;

std::vector<float> floats(const Tensor& tensor) {
  const auto view = tensor.view<float>();
  return {view.begin(), view.end()};
}

TEST(Interpreter, RunsAGraph) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {2, 2}));
  const ValueId w = graph.add_constant(Tensor::of<float>(DType::f32, {2, 2}, {1, 2, 3, 4}));
  const ValueId y = graph.add(Op::matmul, {x, w});
  graph.outputs = {graph.add(Op::relu, {y})};
  verify(graph);
  const auto results = interpret(graph, {Tensor::of<float>(DType::f32, {2, 2}, {1, 0, -1, 1})});
  EXPECT_THAT(floats(results.at(0)), ElementsAre(1, 2, 2, 2));
}

TEST(Interpreter, RefusesInputsThatDoNotFit) {
  Graph graph;
  graph.outputs = {graph.add(Op::relu, {graph.add_input("x", make_type(DType::f32, {2}))})};
  EXPECT_THROW((void)interpret(graph, {}), InputError);
  EXPECT_THROW((void)interpret(graph, {Tensor(DType::f32, {3})}), InputError);
  EXPECT_THROW((void)interpret(graph, {Tensor(DType::f64, {2})}), InputError);
}

TEST(Interpreter, ResultsWithoutElementsTakeNoTime) {
  constexpr std::int64_t far = std::int64_t{1} << 31;
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {0, 1, far}));
  graph.outputs = {
      graph.add(Op::max_pool, {x},
                {{"kernel", Dims{1}}, {"strides", Dims{1}}, {"pads", Dims{0, 0}}, {"dilations", Dims{1}}})};
  EXPECT_EQ(interpret(graph, {Tensor(DType::f32, {0, 1, far})}).at(0).dims(), (Dims{0, 1, far}));
}

}  // namespace
}  // namespace sylvite::interpreter_test
