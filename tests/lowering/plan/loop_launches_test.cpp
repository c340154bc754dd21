#include <gmock/gmock.h>

#include "base/error.h"
#include "lowering/plan/memory_plan.h"
#include "lowering/plan/plan_interpreter.h"
#include "lowering/plan/plan_loops.h"
#include "lowering/plan/plan_verifier.h"
#include "tests/lowering/sample_graphs.h"
#include "tests/support/sample_loops.h"

namespace sylvite::loop_launches_test {
namespace {

TEST(LoopLaunches, ComputeWhatTheGraphComputes) {
  for (const LoopSample& sample : loop_samples()) expect_lowers_faithfully(sample_loop(sample));
}

/// With fixed addresses, as devices want them.
TEST(LoopLaunches, CanBeUnrolled) {
  for (const LoopSample& sample : loop_samples()) {
    const Graph graph = sample_loop(sample);
    const std::vector<Tensor> inputs = sample_loop_inputs(graph);
    const Plan plan = lower(graph);
    const Plan flat = unrolled(plan);
    EXPECT_TRUE(flat.loops.empty());
    EXPECT_EQ(flat.kernels.size(), plan.kernels.size());
    const std::vector<Tensor> expected = interpret_plan(plan, inputs);
    const std::vector<Tensor> actual = interpret_plan(flat, inputs);
    for (std::size_t i = 0; i < expected.size(); ++i) expect_close(actual[i], expected[i]);
  }
}

TEST(LoopLaunches, AreAsManyWhateverTheTrips) {
  const Plan few = lower(sample_loop({.trips = 3}));
  const Plan many = lower(sample_loop({.trips = 1000}));
  EXPECT_EQ(few.launches.size(), many.launches.size());
  ASSERT_EQ(many.loops.size(), 1U);
  EXPECT_EQ(many.loops[0].trips, 1000);
  const std::vector<std::int64_t> counts = launch_counts(many);
  EXPECT_EQ(counts[static_cast<std::size_t>(many.loops[0].first)], 1000);
  EXPECT_EQ(counts[0], 1);
}

/// A state that is stacked as well is written where it is stacked.
TEST(LoopLaunches, CopyNothingThatLiesWell) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::f32, {8, 16});
  const Sym start = builder.input("start", DType::f32, {16});
  const TripValues results =
      run_loop(builder, {8, false, {{start}, {apply(Op::exp, x)}}}, [](const TripValues& trip) -> TripValues {
        const Sym next = apply(Op::tanh, trip.states[0] + trip.slices[0]);
        return {{next}, {next}};
      });
  builder.output(apply(Op::exp, results.slices[0]), "y");
  const Plan plan = lower(without_dead_nodes(graph));
  ASSERT_EQ(plan.loops.size(), 1U);
  EXPECT_EQ(plan.loops[0].end - plan.loops[0].first, 1);
  EXPECT_EQ(plan.launches.size(), 4U) << plan_text(plan);  // exp, the first state, the loop's, exp
}

TEST(LoopLaunches, KeepWhatTheyReadForAllTrips) {
  const Plan plan = lower(sample_loop({}));
  const std::vector<LiveRange> ranges = live_ranges(plan);
  const PlanLoop& loop = plan.loops.at(0);
  for (std::int32_t i = loop.first; i < loop.end; ++i) {
    for (const BufferId id : plan.launches[static_cast<std::size_t>(i)].arguments) {
      if (window_of(plan, id) == nullptr) continue;
      const LiveRange& range = ranges[static_cast<std::size_t>(root_of(plan, id))];
      EXPECT_LE(range.first, loop.first);
      EXPECT_GE(range.last, loop.end - 1);
    }
  }
}

/// A direction's product of its input, which stands between the loops, moves ahead of both.
TEST(LoopLaunches, StandBesideEachOther) {
  const Graph graph = sample_two_loops(false);
  expect_lowers_faithfully(graph);
  const Plan plan = lower(graph);
  ASSERT_EQ(plan.loops.size(), 2U);
  EXPECT_FALSE(plan.loops[0].beside);
  EXPECT_TRUE(plan.loops[1].beside);
  EXPECT_EQ(plan.loops[0].end, plan.loops[1].first);
  EXPECT_EQ(loop_groups(plan).size(), 1U);
}

TEST(LoopLaunches, FollowWhatTheyRead) {
  const Graph graph = sample_two_loops(true);
  expect_lowers_faithfully(graph);
  const Plan plan = lower(graph);
  ASSERT_EQ(plan.loops.size(), 2U);
  EXPECT_FALSE(plan.loops[1].beside);
  EXPECT_EQ(loop_groups(plan).size(), 2U);
}

TEST(LoopLaunches, AreVerifiedToHaveNothingInCommon) {
  Plan beside = lower(sample_two_loops(false));
  verify(beside);
  beside.loops[0].beside = true;
  EXPECT_THROW(verify(beside), InternalError);
  Plan chained = lower(sample_two_loops(true));
  chained.loops[1].beside = true;
  EXPECT_THROW(verify(chained), InternalError);
}

TEST(LoopLaunches, AreVerified) {
  Plan plan = lower(sample_loop({}));
  plan.loops[0].trips += 2;
  EXPECT_THROW(verify(plan), InternalError);
  plan.loops[0].trips -= 2;
  plan.loops[0].end = 1000;
  EXPECT_THROW(verify(plan), InternalError);
}

}  // namespace
}  // namespace sylvite::loop_launches_test
