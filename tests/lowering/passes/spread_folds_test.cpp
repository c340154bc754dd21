// Sums of short rows that all elements of a row are told.

#include <gtest/gtest.h>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "lowering/plan/plan.h"
#include "lowering/plan/plan_interpreter.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::spread_folds_test {
namespace {

/// The exponential of the mean of each row, for each of its elements.
Graph told(const Dims& dims, bool is_read_again = false) {
  Graph graph;
  const auto last = static_cast<std::int64_t>(dims.size()) - 1;
  const ValueId sum = graph.add(Op::reduce_sum, {graph.add_input("x", f32(dims))},
                                {{"axes", Dims{last}}, {"keepdims", std::int64_t{1}}});
  const ValueId root =
      graph.add(Op::exp, {graph.add(Op::mul, {sum, scalar(graph, 1 / static_cast<float>(dims.back()))})});
  graph.outputs = {graph.add(Op::broadcast_to, {root}, {{"shape", dims}})};
  if (is_read_again) graph.outputs.push_back(root);
  return graph;
}

TEST(SpreadFolds, EachElementFoldsItsRow) {
  LoweringOptions on_a_gpu;
  on_a_gpu.image_layout = ImageLayout::dense;
  on_a_gpu.refuse_template = [](const Kernel&) { return "there is none"; };
  for (const Dims& dims : {Dims{3, 4, 8}, Dims{5, 7}}) {
    const Graph graph = told(dims);
    EXPECT_EQ(spread_folds(graph).nodes().back().op, Op::exp);
    const std::vector<Tensor> inputs = random_inputs(graph);
    const Plan plan = lower(graph, on_a_gpu);
    EXPECT_EQ(plan.launches.size(), 1U) << plan_text(plan);
    expect_close(interpret_plan(plan, inputs).at(0), interpret(graph, inputs).at(0), 1e-5);
  }
}

TEST(SpreadFolds, LongRowsAndSumsThatOthersReadStay) {
  for (const Graph& graph : {told({3, 4, 100}), told({4096, 80, 8}), told({3, 4, 8}, true)})
    EXPECT_TRUE(same_structure(spread_folds(graph), graph));
}

}  // namespace
}  // namespace sylvite::spread_folds_test
