#include "lowering/plan/symbolic_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "frontend/build/resize.h"
#include "frontend/graph/loop_builder.h"
#include "frontend/graph/rewrite.h"
#include "frontend/values/size_table.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::symbolic_plan_test {
namespace {

const std::vector<FitSymbol> names = {{"batch", 1}, {"length", 1}};
const std::vector<Dims> sizes = {{2, 16}, {15, 512}, {3, 40}, {8, 500}, {5, 77}, {4, 100}};

/// Rows of a table of as many as a value is long, added to it, normalised, and multiplied by itself. Scores are scaled by the
/// length to a power.
Graph attention(const Dims& at, float power = 0) {
  Graph graph;
  const Tensor all = random_tensor({600, 8}, 3);
  Tensor table(DType::f32, {at[1], 8});
  for (std::int64_t i = 0; i < table.size(); ++i) table.set_double(i, all.as_double(i));
  ValueId x = graph.add_input("x", f32({at[0], at[1], 8}));
  x = graph.add(Op::add, {x, graph.add_constant(table, "table")});
  const ValueId turned = graph.add(Op::transpose, {x}, {{"perm", Dims{0, 2, 1}}});
  ValueId scores = graph.add(Op::matmul, {x, turned});
  if (power != 0)
    scores = graph.add(Op::mul, {scores, scalar(graph, std::pow(static_cast<float>(at[1]), power))});
  const ValueId soft = graph.add(Op::softmax, {scores}, {{"axis", std::int64_t{2}}});
  const ValueId mixed = graph.add(Op::matmul, {soft, x});
  graph.outputs = {graph.add(Op::reshape, {mixed}, {{"shape", Dims{at[0] * at[1], 8}}})};
  return graph;
}

/// Means over an image's pixels behind two convolutions that step by two: what they round is no product of sizes.
Graph image(const Dims& at) {
  Graph graph;
  ValueId x = graph.add_input("x", f32({1, 4, at[0], at[1]}));
  for (int i = 0; i < 2; ++i) {
    const ValueId w = graph.add_constant(random_tensor({4, 4, 3, 3}, 7), "w" + std::to_string(i));
    x = graph.add(Op::conv, {x, w},
                  {{"strides", Dims{2, 2}},
                   {"pads", Dims{1, 1, 1, 1}},
                   {"dilations", Dims{1, 1}},
                   {"groups", std::int64_t{1}}});
  }
  const Dims dims = graph.type(x).dims();
  const ValueId rows = graph.add(Op::reshape, {x}, {{"shape", Dims{4, dims[2] * dims[3]}}});
  const ValueId sum = graph.add(Op::reduce_sum, {rows}, {{"axes", Dims{1}}});
  const float part = 1.0F / static_cast<float>(dims[2] * dims[3]);
  graph.outputs = {graph.add(Op::sub, {rows, graph.add(Op::mul, {sum, scalar(graph, part)})})};
  return graph;
}

/// An image at `scale` times its size, lines and columns by different rules, then at the size that it had.
Graph resized(const Dims& at, double scale) {
  Graph graph;
  GraphBuilder b(graph);
  Sym x = b.input("x", DType::f32, {1, 4, at[0], at[1]});
  const auto to = [&](std::int64_t from) {
    return static_cast<std::int64_t>(static_cast<double>(from) * scale);
  };
  const ResizeRule linear{.mode = "linear"}, cubic{.mode = "cubic"}, nearest;
  x = resize_axis(x, 2, linear, {at[0], to(at[0]), scale});
  x = resize_axis(x, 3, cubic, {at[1], to(at[1]), scale});
  for (int axis = 2; axis < 4; ++axis) {
    const std::int64_t back = at[static_cast<std::size_t>(axis - 2)], from = to(back);
    x = resize_axis(x, axis, nearest, {from, back, static_cast<double>(back) / static_cast<double>(from)});
  }
  b.output(x, "y");
  return graph;
}

/// A state that takes turns between two places, over every second line of a signal; before it the lines are folded.
Graph recurrent(const Dims& at) {
  Graph graph;
  GraphBuilder b(graph);
  const ValueId x = graph.add_input("x", f32({at[0], 4, at[1]}));
  const ValueId w = graph.add_constant(random_tensor({16, 4, 5}, 7), "w");
  const ValueId conv = graph.add(
      Op::conv, {x, w},
      {{"strides", Dims{2}}, {"pads", Dims{2, 2}}, {"dilations", Dims{1}}, {"groups", std::int64_t{1}}});
  const Sym lines = transpose(Sym(b, conv), {2, 0, 1});
  const Sym start = b.constant(Tensor(DType::f32, {at[0], 16}), "start");
  const Sym square = b.constant(random_tensor({16, 16}, 8), "square");
  const LoopSpec spec{lines.dim(0), false, {{start}, {lines}}};
  const TripValues results = run_loop(b, spec, [&](const TripValues& trip) -> TripValues {
    return {{apply(Op::tanh, matmul(trip.states[0], square) + trip.slices[0])}, {}};
  });
  b.output(results.states[0], "y");
  return without_dead_nodes(graph);
}

using MakeGraph = std::function<Graph(const Dims&)>;

std::vector<PlanSample> samples(const MakeGraph& graph_at, const std::vector<Dims>& points = sizes) {
  std::vector<PlanSample> all;
  all.reserve(points.size());
  for (const Dims& at : points) all.push_back({at, std::make_shared<const Plan>(lower(graph_at(at)))});
  return all;
}

std::vector<PlanSample> samples(float power = 0) {
  return samples([&](const Dims& at) { return attention(at, power); });
}

void expect_lowered(const SymbolicPlan& symbolic, const Dims& at, const MakeGraph& graph_at) {
  const std::optional<Plan> found = symbolic.at(at, true);
  const Graph graph = graph_at(at);
  const Plan wanted = lower(graph);
  ASSERT_TRUE(found);
  EXPECT_EQ(plan_text(*found), plan_text(wanted));
  EXPECT_EQ(found->arena_bytes, wanted.arena_bytes);
  for (std::size_t i = 0; i < wanted.kernels.size(); ++i)
    EXPECT_EQ(found->kernels[i].text, wanted.kernels[i].text);
  const std::vector<Tensor> inputs = {random_tensor(graph.type(graph.inputs[0]).dims(), 5)};
  const Tensor expected = interpret(graph, inputs).at(0);
  const Tensor given = interpret_plan(*found, inputs).at(0);
  ASSERT_EQ(given.type(), expected.type());
  for (std::int64_t i = 0; i < given.size(); ++i)
    ASSERT_NEAR(given.as_double(i), expected.as_double(i), 1e-4);
}

TEST(SymbolicPlan, IsWhatLoweringGives) {
  const std::optional<SymbolicPlan> symbolic = SymbolicPlan::of(names, samples());
  ASSERT_TRUE(symbolic);
  for (const Dims& at : {Dims{7, 200}, {2, 16}, {11, 33}})
    expect_lowered(*symbolic, at, [](const Dims& each) { return attention(each); });
}

/// What few points told of an input's extent may be another number at other sizes.
TEST(SymbolicPlan, TakesInputsOfTheExtentsThatItTells) {
  const std::optional<SymbolicPlan> symbolic = SymbolicPlan::of(names, samples());
  ASSERT_TRUE(symbolic);
  EXPECT_TRUE(symbolic->takes({{7, 200, 8}}, {7, 200}));
  EXPECT_FALSE(symbolic->takes({{7, 201, 8}}, {7, 200}));
  EXPECT_FALSE(symbolic->takes({}, {7, 200}));
}

TEST(SymbolicPlan, KnowsWhatStridesRound) {
  const std::optional<SymbolicPlan> symbolic = SymbolicPlan::of(
      {{"lines", 1}, {"columns", 1}},
      samples(image, {{64, 320}, {129, 77}, {200, 90}, {95, 303}, {318, 66}, {77, 211}, {251, 254}}));
  ASSERT_TRUE(symbolic);
  for (const Dims& at : {Dims{101, 99}, {64, 320}, {182, 255}}) expect_lowered(*symbolic, at, image);
}

TEST(SymbolicPlan, KnowsWhereLoopsLeaveTheirStates) {
  const std::optional<SymbolicPlan> symbolic = SymbolicPlan::of(
      {{"batch", 1}, {"length", 1}},
      samples(recurrent, {{2, 64}, {3, 129}, {7, 90}, {5, 95}, {4, 38}, {6, 77}, {2, 103}, {8, 54}}));
  ASSERT_TRUE(symbolic);
  for (const Dims& at : {Dims{4, 64}, {6, 65}, {3, 66}, {7, 67}}) expect_lowered(*symbolic, at, recurrent);
}

TEST(SymbolicPlan, MakesTheTablesOfResizesByTheirRules) {
  const std::vector<Dims> points = {{32, 48}, {96, 32}, {64, 128}, {128, 96}, {48, 112}, {80, 64}};
  for (const double scale : {2.0, 1.5}) {
    const MakeGraph graph_at = [scale](const Dims& at) { return resized(at, scale); };
    const auto symbolic = SymbolicPlan::of({{"lines", 16}, {"columns", 16}}, samples(graph_at, points));
    ASSERT_TRUE(symbolic);
    expect_lowered(*symbolic, {112, 80}, graph_at);
  }
}

TEST(SymbolicPlan, HasNoPlanWhereAnAxisKeepsItsExtent) {
  const MakeGraph graph_at = [](const Dims& at) {
    Graph graph;
    GraphBuilder b(graph);
    const Sym x = b.input("x", DType::f32, {1, 4, at[0], at[1]});
    const double scale = 61.0 / static_cast<double>(at[0]);
    b.output(resize_axis(x, 2, ResizeRule{.mode = "cubic"}, {at[0], 61, scale}), "y");
    return graph;
  };
  const std::vector<Dims> points = {{32, 48}, {96, 32}, {64, 128}, {128, 96}, {48, 112}, {80, 64}};
  const auto symbolic = SymbolicPlan::of({{"lines", 1}, {"columns", 1}}, samples(graph_at, points));
  ASSERT_TRUE(symbolic);
  expect_lowered(*symbolic, {100, 80}, graph_at);
  EXPECT_FALSE(symbolic->at({61, 80}, true)) << "nothing is resized there";
}

TEST(SymbolicPlan, LayersMayBeEqualAtSomeSizes) {
  const MakeGraph graph_at = [](const Dims& at) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({at[0], at[1], 8}));
    const ValueId turned = graph.add(Op::transpose, {x}, {{"perm", Dims{1, 0, 2}}});
    for (const ValueId each : {x, turned})
      graph.outputs.push_back(graph.add(Op::softmax, {each}, {{"axis", std::int64_t{1}}}));
    return graph;
  };
  const std::vector<Dims> points = {{2, 16}, {15, 40}, {8, 8}, {8, 30}, {5, 77}, {4, 100}, {20, 20}};
  const auto symbolic = SymbolicPlan::of({{"lines", 1}, {"columns", 1}}, samples(graph_at, points));
  ASSERT_TRUE(symbolic);
  for (const Dims& at : {Dims{11, 33}, {13, 13}}) {
    const std::optional<Plan> found = symbolic->at(at, true);
    ASSERT_TRUE(found);
    EXPECT_EQ(plan_text(*found), plan_text(lower(graph_at(at))));
  }
}

TEST(SymbolicPlan, WindowsOfOtherSizesAreAnotherStructure) {
  const auto structure = [](std::int64_t window) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({1, 4, 9, 9}));
    const ValueId w = graph.add_constant(random_tensor({4, 4, window, window}, 7), "w");
    graph.outputs = {graph.add(Op::conv, {x, w},
                               {{"strides", Dims{1, 1}},
                                {"pads", Dims{window / 2, window / 2, window / 2, window / 2}},
                                {"dilations", Dims{1, 1}},
                                {"groups", std::int64_t{1}}})};
    return plan_structure(lower(graph));
  };
  EXPECT_EQ(structure(3), structure(3));
  EXPECT_NE(structure(3), structure(5)) << "as where taps that only read borders are gone";
}

TEST(SymbolicPlan, HasNoPlanWhereATableEnds) {
  const std::optional<SymbolicPlan> symbolic = SymbolicPlan::of(names, samples());
  ASSERT_TRUE(symbolic);
  EXPECT_FALSE(symbolic->at({2, 513}, true)) << "no sample has a row 512";
}

/// What training keeps of a batch norm's variance is over one pixel less.
TEST(SymbolicPlan, NumbersOfOpenSizesAreArguments) {
  const auto without_one = [](const Dims& numbers) {
    const auto count = static_cast<double>(numbers.at(0));
    Tensor made(DType::f32, {});
    made.set_double(0, count / (count - 1));
    return made;
  };
  const MakeGraph graph_at = [&](const Dims& at) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({64}));
    const Tensor share = make_size_table({{"n/(n-1)", {at[0] * at[1]}, without_one, true}});
    const ValueId whole = graph.add(Op::mul, {x, graph.add_constant(share, "share")});
    graph.outputs = {graph.add(Op::mul, {whole, scalar(graph, 0.1F)})};
    return graph;
  };
  const auto symbolic = SymbolicPlan::of(names, samples(graph_at, sizes));
  ASSERT_TRUE(symbolic);
  expect_lowered(*symbolic, {7, 90}, graph_at);
  EXPECT_TRUE(symbolic->is_fixed(0)) << "one kernel at all sizes";
}

TEST(SymbolicPlan, NumbersOfOtherKindsAreNoExpressions) {
  EXPECT_TRUE(SymbolicPlan::of(names, samples(-1.0F))) << "one over the length";
  EXPECT_FALSE(SymbolicPlan::of(names, samples(-0.5F)));
  std::vector<PlanSample> few = samples();
  few.pop_back();
  EXPECT_FALSE(SymbolicPlan::of(names, few)) << "too few";
  std::vector<PlanSample> other = samples();
  Graph graph = attention({4, 100});
  graph.outputs[0] = graph.add(Op::relu, {graph.outputs[0]});
  other.back().plan = std::make_shared<const Plan>(lower(graph));
  EXPECT_FALSE(SymbolicPlan::of(names, other)) << "one has another structure";
}

}  // namespace
}  // namespace sylvite::symbolic_plan_test
