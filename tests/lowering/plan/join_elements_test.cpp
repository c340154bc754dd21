#include "lowering/plan/join_elements.h"

#include <gmock/gmock.h>

#include "frontend/graph/interpreter.h"
#include "lowering/plan/plan_interpreter.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::join_elements_test {
namespace {

using testing::ElementsAre;

/// A device with a template for nothing.
LoweringOptions on_device() {
  LoweringOptions options;
  options.image_layout = ImageLayout::dense;
  options.refuse_template = [](const Kernel&) -> std::string { return "there is none"; };
  return options;
}

void expect_same_results(const Graph& graph, const LoweringOptions& options) {
  std::vector<Tensor> inputs;
  inputs.reserve(graph.inputs.size());
  for (const ValueId id : graph.inputs)
    inputs.push_back(random_tensor(graph.type(id).dims(), static_cast<std::uint32_t>(id), 0.1));
  const std::vector<Tensor> wanted = interpret(graph, inputs),
                            got = interpret_plan(lower(graph, options), inputs);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::int64_t e = 0; e < wanted[i].size(); ++e)
      ASSERT_NEAR(got[i].as_double(e), wanted[i].as_double(e), 1e-5);
}

class JoinElements : public testing::Test {
 protected:
  ValueId add(ValueId a, ValueId b) { return graph.add(Op::add, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return graph.add(Op::mul, {a, b}); }
  ValueId matmul(ValueId a, ValueId b) { return graph.add(Op::matmul, {a, b}); }
  ValueId exp(ValueId a) { return graph.add(Op::exp, {a}); }

  Graph graph;
  ValueId x = graph.add_input("x", f32({600, 600}));
  ValueId y = graph.add_input("y", f32({600, 600}));
  ValueId z = graph.add_input("z", f32({600, 600}));
};

/// Adam's moments and parameter.
TEST_F(JoinElements, AStepOfAnOptimiserIsOneKernelOnADevice) {
  const ValueId moment = add(x, y), square = add(z, mul(y, y));
  graph.outputs = {moment, square, graph.add(Op::div, {moment, exp(square)})};
  EXPECT_THAT(outputs_of_launches(graph, on_device()), ElementsAre(3));
  expect_same_results(graph, on_device());
}

/// One kernel stores them in turn: what is written over an input comes last.
TEST_F(JoinElements, WhatIsWrittenOverAnInputIsStoredOnceNoOtherReadsThat) {
  const ValueId moment = add(x, y), place = exp(add(z, moment));
  graph.outputs = {moment, place};
  graph.overwrites = {{0, 0}, {2, 1}};
  EXPECT_THAT(outputs_of_launches(graph, {}), ElementsAre(2));
  const Plan plan = lower(graph, {});
  const std::vector<BufferId>& arguments = plan.launches[0].arguments;
  EXPECT_EQ(arguments.at(arguments.size() - 2), plan.outputs[1].buffer);
  EXPECT_EQ(arguments.back(), plan.outputs[0].buffer);
  graph.outputs = {moment, graph.add(Op::sub, {x, y})};
  graph.overwrites = {{0, 0}, {1, 1}};  // each reads both
  EXPECT_THAT(outputs_of_launches(graph, {}), ElementsAre(1, 1));
}

TEST_F(JoinElements, BothPartsOfAComplexNumberAreOneKernel) {
  const ValueId a = exp(matmul(x, y)), b = exp(matmul(x, z)), c = exp(matmul(y, z));
  const ValueId real = graph.add(Op::sub, {mul(a, b), mul(b, c)}), imaginary = add(mul(a, c), mul(b, b));
  graph.outputs = {matmul(real, real), matmul(imaginary, imaginary)};
  EXPECT_THAT(outputs_of_launches(graph, {}), ElementsAre(1, 1, 1, 2, 1, 1));
  EXPECT_THAT(outputs_of_launches(graph, on_device()), ElementsAre(1, 1, 1, 2, 1, 1));
  expect_same_results(graph, {});
}

TEST_F(JoinElements, WhatDependsOnTheOtherByWayOfMoreStaysApart) {
  const ValueId first = exp(x), between = matmul(first, y);
  graph.outputs = {matmul(graph.add(Op::div, {first, between}), y), matmul(first, z)};
  EXPECT_THAT(outputs_of_launches(graph, {}), ElementsAre(1, 1, 1, 1));
}

/// The product in between reads the first result; the kernel stands ahead of it.
TEST_F(JoinElements, WhatDependsOnTheFirstMovesBehind) {
  const ValueId first = exp(x), between = matmul(first, y), second = graph.add(Op::sin, {add(x, z)});
  graph.outputs = {between, matmul(first, second)};
  EXPECT_THAT(outputs_of_launches(graph, on_device()), ElementsAre(2, 1, 1));
  expect_same_results(graph, on_device());
}

TEST_F(JoinElements, WhatReadsOtherElementsStaysApart) {
  const ValueId first = exp(x);
  const ValueId turned = graph.add(Op::transpose, {first}, {{"perm", Dims{1, 0}}});
  graph.outputs = {matmul(add(turned, first), y), matmul(first, z)};
  EXPECT_THAT(outputs_of_launches(graph, {}), ElementsAre(1, 1, 1, 1));
}

TEST_F(JoinElements, ViewsOfAResultKeepItInMemory) {
  const ValueId first = exp(x), second = mul(first, add(y, x));
  const ValueId seen = graph.add(Op::reshape, {first}, {{"shape", Dims{360, 1000}}});
  graph.outputs = {matmul(second, z), graph.add(Op::reduce_sum, {seen}, {{"axes", Dims{0}}})};
  for (const LoweringOptions& options : {LoweringOptions{}, on_device()}) expect_same_results(graph, options);
}

TEST_F(JoinElements, WhatReadsAResultAndAViewOfAnotherStaysApart) {
  const ValueId a = graph.add_input("a", f32({1, 40, 8}));
  const ValueId first = exp(a), second = mul(first, first);
  const ValueId seen = graph.add(Op::reshape, {second}, {{"shape", Dims{40, 8}}});
  graph.outputs = {add(seen, first)};
  for (const LoweringOptions& options : {LoweringOptions{}, on_device()}) expect_same_results(graph, options);
}

TEST_F(JoinElements, LaunchesOfFewElementsAreOneOnADevice) {
  const ValueId a = graph.add_input("a", f32({8, 8})), b = graph.add_input("b", f32({8, 8}));
  graph.outputs = {exp(a), exp(b)};
  EXPECT_THAT(outputs_of_launches(graph, on_device()), ElementsAre(2));
  graph.outputs = {exp(x), exp(y)};
  EXPECT_THAT(outputs_of_launches(graph, on_device()), ElementsAre(1, 1))
      << "they share nothing, and take long";
}

}  // namespace
}  // namespace sylvite::join_elements_test
