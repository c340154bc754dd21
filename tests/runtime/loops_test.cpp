// Programs with loops against the interpreter.

#include "tests/runtime/test_session.h"
#include "tests/support/sample_loops.h"

namespace sylvite::loops_test {
namespace {

TEST(LoopsTest, ComputeWhatTheGraphComputes) {
  for (const LoopSample& sample : loop_samples()) {
    const Graph graph = sample_loop(sample);
    expect_as_interpreted(graph, sample_loop_inputs(graph));
  }
}

/// Both at once with two threads, many times: what one leaves behind is not the other's to see.
TEST(LoopsTest, ComputeTheSameBesideEachOther) {
  for (const bool chained : {false, true}) {
    const Graph graph = sample_two_loops(chained, 50, 48);
    const std::vector<Tensor> inputs = sample_loop_inputs(graph);
    const std::vector<Tensor> expected = interpret(graph, inputs);
    const TemporaryFolder folder;
    Built built = build_graph(graph, test_options(folder.path()));
    for (int run = 0; run < 50; ++run) {
      const std::vector<Tensor> actual = built.program.run(inputs);
      for (std::size_t i = 0; i < expected.size(); ++i) expect_near(actual[i], expected[i]);
    }
  }
}

TEST(LoopsTest, AreProfiledByLaunch) {
  const TemporaryFolder folder;
  const Graph graph = sample_loop({.trips = 40});
  Built built = build_graph(graph, test_options(folder.path()));
  std::vector<LaunchTime> times;
  (void)built.program.run(sample_loop_inputs(graph), &times);
  EXPECT_EQ(times.size(), built.program.plan().launches.size());
  double end_us = 0;
  std::int64_t most = 0;
  for (const LaunchTime& time : times) {
    EXPECT_GE(time.start_us, end_us);
    end_us = time.start_us + time.duration_us;
    most = std::max(most, time.count);
  }
  EXPECT_EQ(most, 40);
}

}  // namespace
}  // namespace sylvite::loops_test
