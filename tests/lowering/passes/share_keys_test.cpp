#include "lowering/passes/share_keys.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/graph/interpreter.h"
#include "lowering/plan/plan_interpreter.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::share_keys_test {
namespace {

constexpr std::int64_t heads = 6;

LoweringOptions options() {
  LoweringOptions options;
  options.refuse_template = [](const Kernel&) { return ""; };
  return options;
}

/// Keys or values of so many heads, each repeated until there are six.
ValueId repeated(Graph& graph, const std::string& name, std::int64_t groups) {
  const ValueId x = graph.add_input(name, f32({2, groups, 5, 4}));
  const std::int64_t share = heads / groups;
  const ValueId one = reshape(graph, x, {2, groups, 1, 5, 4});
  const ValueId all = graph.add(Op::broadcast_to, {one}, {{"shape", Dims{2, groups, share, 5, 4}}});
  return reshape(graph, all, {2, heads, 5, 4});
}

/// Attention over rows of heads, as models have it.
Graph attention_in_groups(std::int64_t groups, const Dims& mask) {
  Graph graph;
  const ValueId rows = reshape(graph, graph.add_input("q", f32({2, 3, heads * 4})), {2, 3, heads, 4});
  std::vector<ValueId> inputs = {transpose(graph, rows, {0, 2, 1, 3}), repeated(graph, "k", groups),
                                 repeated(graph, "v", groups)};
  if (!mask.empty()) inputs.push_back(graph.add_input("mask", f32(mask)));
  const ValueId out = graph.add(Op::attention, inputs);
  graph.outputs = {reshape(graph, transpose(graph, out, {0, 2, 1, 3}), {2, 3, heads * 4})};
  return graph;
}

std::int64_t count(const Graph& graph, Op op) {
  return std::ranges::count_if(graph.nodes(), [&](const Node& node) { return node.op == op; });
}

void expect_equal(const Graph& before, const Graph& after) {
  const std::vector<Tensor> inputs = random_inputs(before);
  const Tensor wanted = interpret(before, inputs)[0], got = interpret(after, inputs)[0];
  ASSERT_EQ(wanted.dims(), got.dims());
  for (std::int64_t k = 0; k < wanted.size(); ++k)
    ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-6) << "at " << k;
}

TEST(ShareKeys, ReadsWhatIsRepeatedOnce) {
  for (const std::int64_t groups : {1, 2, 3}) {
    for (const Dims& mask : {Dims{}, Dims{2, 1, 3, 5}, Dims{2, heads, 3, 5}, Dims{heads, 1, 5}, Dims{3, 5}}) {
      const Graph graph = attention_in_groups(groups, mask), shared = share_keys(graph, options());
      EXPECT_EQ(count(shared, Op::broadcast_to), 0);
      EXPECT_EQ(count(shared, Op::attention), 1);
      expect_equal(graph, shared);
      const Plan plan = lower(graph, options());
      EXPECT_EQ(plan.launches.size(), 1U) << groups;
      const std::vector<Tensor> inputs = random_inputs(graph);
      const Tensor wanted = interpret(graph, inputs)[0], got = interpret_plan(plan, inputs)[0];
      for (std::int64_t k = 0; k < wanted.size(); ++k)
        ASSERT_NEAR(wanted.as_double(k), got.as_double(k), 1e-6) << "at " << k;
    }
  }
}

TEST(ShareKeys, NotWithoutATemplate) {
  LoweringOptions none;
  none.refuse_template = [](const Kernel& kernel) {
    const Node& node = kernel.body.node(kernel.anchor);
    return kernel.body.type(node.inputs[1]).rank() == 5 ? "its heads are shared" : "";
  };
  const Graph graph = attention_in_groups(2, {});
  EXPECT_EQ(count(share_keys(graph, none), Op::broadcast_to), 2);
}

TEST(ShareKeys, NotWhereOthersReadTheRepetition) {
  Graph graph = attention_in_groups(2, {});
  const auto attention =
      std::ranges::find_if(graph.nodes(), [](const Node& node) { return node.op == Op::attention; });
  graph.outputs.push_back(graph.add(Op::abs, {attention->inputs[1]}));
  const Graph shared = share_keys(graph, options());
  EXPECT_EQ(count(shared, Op::broadcast_to), 2);
  expect_equal(graph, shared);
}

TEST(ShareKeys, NotWhereHeadsAreRepeatedInTurns) {
  Graph graph;
  std::vector<ValueId> inputs = {graph.add_input("q", f32({2, heads, 3, 4}))};
  for (const char* name : {"k", "v"}) {
    const ValueId one = graph.add_input(name, f32({2, 1, 2, 5, 4}));
    inputs.push_back(reshape(graph, graph.add(Op::broadcast_to, {one}, {{"shape", Dims{2, 3, 2, 5, 4}}}),
                             {2, heads, 5, 4}));
  }
  graph.outputs = {graph.add(Op::attention, inputs)};
  const Graph shared = share_keys(graph, options());
  EXPECT_EQ(count(shared, Op::broadcast_to), 2);
  expect_equal(graph, shared);
}

}  // namespace
}  // namespace sylvite::share_keys_test
