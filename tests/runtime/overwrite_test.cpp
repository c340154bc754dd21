#include "runtime/overwrite.h"

#include <gtest/gtest.h>

#include "frontend/values/copy_of.h"
#include "lowering/plan/plan.h"
#include "schedules/space.h"
#include "tests/runtime/test_session.h"
#include "tests/support/sample_card.h"

namespace sylvite::overwrite_test {
namespace {

ValueId times(Graph& graph, ValueId x, float factor) {
  return graph.add(Op::mul, {x, graph.add_constant(Tensor::scalar_f32(factor))});
}

/// A step with momentum: the next place and the next momentum, of place, momentum and slope.
Graph step_of(const Dims& dims) {
  Graph graph;
  const ValueId place = graph.add_input("place", make_type(DType::f32, dims));
  const ValueId momentum = graph.add_input("momentum", make_type(DType::f32, dims));
  const ValueId slope = graph.add_input("slope", make_type(DType::f32, dims));
  const ValueId next = graph.add(Op::add, {times(graph, momentum, 0.9F), slope});
  graph.outputs = {graph.add(Op::add, {place, times(graph, next, -0.1F)}), next};
  return graph;
}

TEST(Overwrite, ResultsLieWhereInputsDo) {
  const TemporaryFolder folder;
  Built built = build_graph(step_of({64, 64}), test_options(folder.path()));
  const std::vector<Overwrite> over = {{0, 0}, {1, 1}};
  for (const Overwrite& places : over) EXPECT_TRUE(built.program.may_write_over(places));
  const std::vector<Tensor> given = {sample_tensor(DType::f32, {64, 64}, 1),
                                     sample_tensor(DType::f32, {64, 64}, 2),
                                     sample_tensor(DType::f32, {64, 64}, 3)};
  const std::vector<Tensor> expected = built.program.run(given);
  std::vector<Tensor> changed = {copy_of(given[0]), copy_of(given[1]), given[2]};
  std::vector<Tensor> results;
  built.program.run_at(changed, {changed[0].mutable_data(), changed[1].mutable_data()}, results);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(results[i].data(), nullptr);
    expect_near(changed[i], expected[i], 0);
  }
  expect_near(built.program.run(given)[0], expected[0], 0);  // the next run has memory of its own
}

TEST(Overwrite, WhatIsReadLaterStays) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {64, 64}));
  const ValueId y = graph.add_input("y", make_type(DType::f32, {64, 64}));
  const ValueId first = times(graph, y, 2);
  graph.outputs = {first, graph.add(Op::matmul, {x, first})};
  const TemporaryFolder folder;
  const Built built = build_graph(std::move(graph), test_options(folder.path()));
  EXPECT_FALSE(built.program.may_write_over({0, 0}));  // the product reads x
  EXPECT_TRUE(built.program.may_write_over({0, 1}));
}

/// Steps that are shifted inwards would read what they have written.
TEST(Overwrite, LoopsThatComputeElementsTwiceDoNot) {
  const TemporaryFolder folder;
  const Built built = build_graph(step_of({4099}), test_options(folder.path()));
  EXPECT_FALSE(built.program.may_write_over({1, 1}));
}

TEST(Overwrite, OtherElementsAreNotRead) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {64, 64}));
  const Attributes swapped{{"perm", std::vector<std::int64_t>{1, 0}}};
  graph.outputs = {times(graph, graph.add(Op::transpose, {x}, swapped), 2)};
  const TemporaryFolder folder;
  const Built built = build_graph(std::move(graph), test_options(folder.path()));
  EXPECT_FALSE(built.program.may_write_over({0, 0}));
}

TEST(Overwrite, AnInputThatIsAResultStays) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {64, 64}));
  graph.outputs = {times(graph, x, 2), x};
  const TemporaryFolder folder;
  const Built built = build_graph(std::move(graph), test_options(folder.path()));
  EXPECT_FALSE(built.program.may_write_over({0, 0}));
}

/// Which results of a graph, as a GPU computes it, may be written over the inputs of their numbers.
std::vector<bool> written_on_device(const Graph& graph) {
  LoweringOptions options;
  options.refuse_template = [](const Kernel&) { return ""; };
  const Plan plan = lower(graph, options);
  EXPECT_EQ(plan.launches.size(), 1U);
  const Machine machine = with_gpu(detect_machine(1), sample_card());
  std::vector<Candidate> candidates;
  std::vector<bool> once, found;
  for (const Kernel& kernel : plan.kernels) {
    candidates.push_back(default_candidate(kernel, machine));
    once.push_back(writes_once(kernel, candidates.back()));
  }
  const Bindings bindings = bind_plan(plan, candidates);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    found.push_back(may_overwrite(plan, bindings, once, {i, i}));
  return found;
}

/// A place is stored before the momentum that it follows from, whatever the order of the graph's results.
TEST(Overwrite, ResultsOfOneKernelAreStoredInTurn) {
  Graph graph = step_of({64, 64});
  EXPECT_EQ(written_on_device(graph), std::vector<bool>({true, true}));
  std::swap(graph.inputs[0], graph.inputs[1]);
  std::swap(graph.outputs[0], graph.outputs[1]);
  EXPECT_EQ(written_on_device(graph), std::vector<bool>({true, true}));
  Graph both;  // each follows from both
  const ValueId x = both.add_input("x", make_type(DType::f32, {64, 64}));
  const ValueId y = both.add_input("y", make_type(DType::f32, {64, 64}));
  both.outputs = {both.add(Op::add, {x, times(both, y, 2)}), both.add(Op::sub, {x, y})};
  EXPECT_EQ(written_on_device(both), std::vector<bool>({false, true}));
}

}  // namespace
}  // namespace sylvite::overwrite_test
