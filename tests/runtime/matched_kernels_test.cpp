#include "runtime/matched_kernels.h"

#include <gtest/gtest.h>

#include "schedules/machine.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::matched_kernels_test {
namespace {

PlanSample sample_at(const Dims& sizes) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32(sizes));
  graph.outputs = {graph.add(Op::softmax, {x}, {{"axis", std::int64_t{1}}})};
  return {sizes, std::make_shared<const Plan>(lower(graph))};
}

/// Plans of one length made a kernel for that length alone, before others made one for all.
TEST(MatchedKernels, ThoseThatServeSomeOfTheSamplesAreLeft) {
  const Machine machine = detect_machine(1);
  KernelMenu menu;
  for (const Dims& sizes : {Dims{20, 64}, {30, 64}, {40, 80}}) menu.learn(*sample_at(sizes).plan, machine);
  std::vector<PlanSample> samples;
  for (const Dims& sizes : {Dims{20, 64}, {30, 64}, {40, 80}, {35, 100}, {50, 200}, {64, 90}})
    samples.push_back(sample_at(sizes));
  ASSERT_GE(menu.alike(samples[0].plan->kernels[0]).size(), 2U);
  const std::vector<FitSymbol> symbols = {{"rows", 1}, {"length", 1}};
  const std::optional<SymbolicPlan> plan = SymbolicPlan::of(symbols, samples);
  ASSERT_TRUE(plan);
  const auto matched = MatchedKernels::of(symbols, *plan, samples, {}, menu, machine);
  ASSERT_TRUE(matched);
  EXPECT_TRUE(matched->has_others(0));
  for (const Dims& sizes : {Dims{33, 64}, {21, 150}}) {
    const std::optional<Kernel> found = matched->at(0, plan->named(sizes), machine, nullptr);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->sizes, sizes);
    ASSERT_NE(matched->numbers_of(0, *found), nullptr);
  }
}

}  // namespace
}  // namespace sylvite::matched_kernels_test
