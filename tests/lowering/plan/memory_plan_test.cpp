#include "lowering/plan/memory_plan.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "lowering/plan/plan_verifier.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::memory_plan_test {
namespace {

/// Reductions between softmaxes: values that cannot fuse.
Graph chain(int length) {
  Graph graph;
  ValueId value = graph.add_input("x", f32({16, 16}));
  for (int i = 0; i < length; ++i) value = graph.add(Op::softmax, {value}, {{"axis", std::int64_t{i % 2}}});
  graph.outputs = {value};
  return graph;
}

TEST(MemoryPlan, ChainTakesTwoPlaces) {
  const Plan plan = lower(chain(6));
  EXPECT_EQ(plan.sum_of_values_bytes, 5 * 1024);
  EXPECT_EQ(plan.arena_bytes, 2 * 1024);
}

TEST(MemoryPlan, WithoutReuseEveryValueHasItsPlace) {
  LoweringOptions options;
  options.reuse_memory = false;
  EXPECT_EQ(lower(chain(6), options).arena_bytes, 5 * 1024);
}

TEST(MemoryPlan, ResultsAreWrittenWhereTheyAreWanted) {
  const Plan plan = lower(chain(1));
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(plan.buffers[static_cast<std::size_t>(plan.outputs[0].buffer)].kind, BufferKind::output);
}

TEST(MemoryPlan, SmallValuesFillGaps) {
  const Plan plan = lower(residual_network());
  EXPECT_LT(plan.arena_bytes, plan.sum_of_values_bytes);
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.kind != BufferKind::arena || buffer.alias_of >= 0) continue;
    EXPECT_EQ(buffer.offset % 64, 0) << buffer.name;
  }
}

std::string problems_of(const Plan& plan) {
  try {
    verify(plan);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(PlanVerifier, FindsOverlap) {
  Plan plan = lower(chain(6));
  for (Buffer& buffer : plan.buffers)
    if (buffer.kind == BufferKind::arena) buffer.offset = 0;
  EXPECT_THAT(problems_of(plan), testing::HasSubstr("live at the same time in the same place"));
}

TEST(PlanVerifier, FindsReadsBeforeWritesAndWrongTypes) {
  Plan plan = lower(chain(3));
  std::swap(plan.launches[0], plan.launches[2]);
  EXPECT_THAT(problems_of(plan), testing::HasSubstr("before it is written"));
  plan = lower(chain(3));
  plan.buffers[static_cast<std::size_t>(plan.launches[1].arguments[0])].type = f32({8, 32});
  EXPECT_THAT(problems_of(plan), testing::HasSubstr("its kernel takes f32[16,16]"));
}

TEST(PlanVerifier, FindsPlacesOutsideTheArena) {
  Plan plan = lower(chain(3));
  plan.arena_bytes -= 64;
  EXPECT_THAT(problems_of(plan), testing::HasSubstr("in an arena of"));
}

}  // namespace
}  // namespace sylvite::memory_plan_test
