#include "lowering/plan/repeats.h"

#include <gtest/gtest.h>

#include "tests/lowering/sample_graphs.h"

namespace sylvite::repeats_test {
namespace {

ValueId squared(Graph& graph, ValueId x) {
  return graph.add(Op::mul, {x, x});
}

/// Differences of neighbours, so many times over: each is read twice by the next, through slices.
Graph differences(int times, std::int64_t columns) {
  Graph graph;
  ValueId x = squared(graph, graph.add_input("x", f32({1024, columns})));
  for (int i = 0; i < times; ++i) {
    const std::int64_t kept = graph.type(x).dims()[1] - 1;
    const auto part = [&](std::int64_t first) {
      return graph.add(Op::slice, {x},
                       {{"starts", Dims{0, first}}, {"sizes", Dims{1024, kept}}, {"steps", Dims{1, 1}}});
    };
    const ValueId left = part(0), right = part(1);
    x = graph.add(Op::sub, {squared(graph, right), left});
  }
  graph.outputs = {x};
  return graph;
}

std::size_t launches(const Graph& graph, bool has_templates) {
  LoweringOptions options;
  if (has_templates) options.refuse_template = [](const Kernel&) -> std::string { return "none"; };
  const Plan plan = lower(graph, options);
  expect_faithful(graph, plan, 1e-3);
  return plan.launches.size();
}

TEST(Repeats, WorkBehindSlicesOfItselfIsKeptAfterTwo) {
  EXPECT_EQ(launches(differences(1, 512), true), 1U);
  EXPECT_EQ(launches(differences(2, 512), true), 2U);  // the first squares
  EXPECT_EQ(launches(differences(4, 512), true), 3U);
  EXPECT_EQ(launches(differences(4, 512), false), 1U);
}

TEST(Repeats, LittleIsComputedAgain) {
  EXPECT_EQ(launches(differences(4, 32), true), 1U);
}

/// What `rows` rows of x are multiplied by: `work` operations on one row.
Graph scaled_rows(std::int64_t rows, int work) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({rows, 2048}));
  ValueId scale = graph.add_input("scale", f32({1, 2048}));
  const ValueId bias = graph.add_input("bias", f32({1, 2048}));
  for (int i = 0; i < work; ++i) scale = graph.add(i % 2 == 0 ? Op::mul : Op::add, {scale, bias});
  graph.outputs = {graph.add(Op::mul, {x, scale})};
  return graph;
}

TEST(Repeats, WorkThatManyElementsShareIsStored) {
  EXPECT_EQ(launches(scaled_rows(32, 4), false), 2U);
  EXPECT_EQ(launches(scaled_rows(32, 3), false), 1U);  // as soon computed as read
  EXPECT_EQ(launches(scaled_rows(8, 6), false), 1U);   // for few
}

}  // namespace
}  // namespace sylvite::repeats_test
