#include <gtest/gtest.h>

#include <random>

#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::bound_scatters_test {
namespace {

/// Numbers that replace those at tuples of indices, on zeros or on another value.
Graph placed(const Dims& dims, const Dims& indices, bool onto_zeros, const std::string& reduction = "none") {
  Graph graph;
  Dims updates(indices.begin(), indices.end() - 1);
  updates.insert(updates.end(), dims.begin() + static_cast<std::ptrdiff_t>(indices.back()), dims.end());
  const ValueId tuples = graph.add_input("tuples", make_type(DType::i64, indices));
  const ValueId values = graph.add_input("values", f32(updates));
  const ValueId x = onto_zeros ? graph.add(Op::broadcast_to, {scalar(graph, 0)}, {{"shape", dims}})
                               : graph.add_input("x", f32(dims));
  graph.outputs = {graph.add(Op::scatter_nd, {x, tuples, values}, {{"reduction", reduction}})};
  return graph;
}

/// Indices of all places and beyond, some of them met often.
std::vector<Tensor> inputs_of(const Graph& graph) {
  std::vector<Tensor> inputs = random_inputs(graph);
  std::mt19937 random(5);
  std::uniform_int_distribution<std::int64_t> near(-5, 5), all(-2000000, 2000000);
  for (std::int64_t i = 0; i < inputs[0].size(); ++i)
    inputs[0].set_int64(i, i % 3 == 0 ? near(random) : all(random));
  return inputs;
}

TEST(BoundScatters, WriteTheSame) {
  const Graph graphs[] = {placed({1 << 20}, {1 << 17, 1}, true),
                          placed({1 << 20}, {1 << 10, 1 << 7, 1}, false),
                          placed({1 << 11, 1 << 9, 2}, {3 << 16, 2}, false)};
  for (const Graph& graph : graphs) {
    const Graph bound = bound_scatters(graph);
    const std::vector<Tensor> inputs = inputs_of(graph);
    const Tensor wanted = interpret(graph, inputs).at(0);
    Graph shown = bound;  // bounds, beside the result
    for (const Node& node : bound.nodes())
      if (node.op == Op::scatter_nd)
        shown.outputs.insert(shown.outputs.end(), {node.inputs.at(1), node.inputs.at(3), node.inputs.at(4)});
    ASSERT_EQ(shown.outputs.size(), 4U);
    const std::vector<Tensor> got = interpret(shown, inputs);
    ASSERT_EQ(wanted.dims(), got[0].dims());
    for (std::int64_t i = 0; i < wanted.size(); ++i) ASSERT_EQ(wanted.as_double(i), got[0].as_double(i)) << i;
    const std::int64_t part = got[1].size() / got[2].size();
    for (std::int64_t i = 0; i < got[1].size(); ++i) {
      ASSERT_GE(got[1].as_int64(i), got[2].as_int64(i / part));
      ASSERT_LE(got[1].as_int64(i), got[3].as_int64(i / part));
    }
  }
}

TEST(BoundScatters, SmallOnesAndSumsStay) {
  for (const Graph& graph : {placed({1 << 20}, {1 << 12, 1}, true), placed({1 << 12}, {1 << 17, 1}, true),
                             placed({1 << 20}, {1 << 17, 1}, true, "add")})
    EXPECT_TRUE(same_structure(bound_scatters(graph), graph));
}

}  // namespace
}  // namespace sylvite::bound_scatters_test
