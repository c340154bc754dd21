#include "lowering/plan/symbolic_plan.h"

#include <gtest/gtest.h>

#include "tests/lowering/sample_graphs.h"

namespace sylvite {
namespace {

const std::vector<FitSymbol> names = {{"batch", 1}, {"length", 1}};
const std::vector<Dims> sizes = {{2, 16}, {15, 512}, {3, 40}, {8, 500}, {5, 77}, {4, 100}};

/// Rows of a table of as many as a value is long, added to it, normalised, and multiplied by itself.
Graph attention(const Dims& at, bool is_scaled = false) {
  Graph graph;
  const Tensor all = random_tensor({600, 8}, 3);
  Tensor table(DType::f32, {at[1], 8});
  for (std::int64_t i = 0; i < table.size(); ++i) table.set_double(i, all.as_double(i));
  ValueId x = graph.add_input("x", f32({at[0], at[1], 8}));
  x = graph.add(Op::add, {x, graph.add_constant(table, "table")});
  const ValueId turned = graph.add(Op::transpose, {x}, {{"perm", Dims{0, 2, 1}}});
  ValueId scores = graph.add(Op::matmul, {x, turned});
  if (is_scaled) scores = graph.add(Op::mul, {scores, scalar(graph, 1.0F / static_cast<float>(at[1]))});
  const ValueId soft = graph.add(Op::softmax, {scores}, {{"axis", std::int64_t{2}}});
  const ValueId mixed = graph.add(Op::matmul, {soft, x});
  graph.outputs = {graph.add(Op::reshape, {mixed}, {{"shape", Dims{at[0] * at[1], 8}}})};
  return graph;
}

std::vector<PlanSample> samples(bool is_scaled = false) {
  std::vector<PlanSample> all;
  for (const Dims& at : sizes)
    all.push_back({at, std::make_shared<const Plan>(lower(attention(at, is_scaled)))});
  return all;
}

TEST(SymbolicPlan, IsWhatLoweringGives) {
  const std::optional<SymbolicPlan> symbolic = SymbolicPlan::of(names, samples());
  ASSERT_TRUE(symbolic);
  for (const Dims& at : {Dims{7, 200}, {2, 16}, {11, 33}}) {
    const std::optional<Plan> found = symbolic->at(at, true);
    const Graph graph = attention(at);
    const Plan wanted = lower(graph);
    ASSERT_TRUE(found);
    EXPECT_EQ(plan_text(*found), plan_text(wanted));
    EXPECT_EQ(found->arena_bytes, wanted.arena_bytes);
    for (std::size_t i = 0; i < wanted.kernels.size(); ++i)
      EXPECT_EQ(found->kernels[i].text, wanted.kernels[i].text);
    const std::vector<Tensor> inputs = {random_tensor({at[0], at[1], 8}, 5)};
    const Tensor expected = interpret(graph, inputs).at(0);
    const Tensor given = interpret_plan(*found, inputs).at(0);
    ASSERT_EQ(given.type(), expected.type());
    for (std::int64_t i = 0; i < given.size(); ++i)
      ASSERT_NEAR(given.as_double(i), expected.as_double(i), 1e-4);
  }
}

TEST(SymbolicPlan, HasNoPlanWhereATableEnds) {
  const std::optional<SymbolicPlan> symbolic = SymbolicPlan::of(names, samples());
  ASSERT_TRUE(symbolic);
  EXPECT_FALSE(symbolic->at({2, 513}, true)) << "no sample has a row 512";
}

TEST(SymbolicPlan, NumbersOfOtherKindsAreNoExpressions) {
  EXPECT_FALSE(SymbolicPlan::of(names, samples(true))) << "a factor differs";
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
}  // namespace sylvite
