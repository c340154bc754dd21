#include "frontend/graph/copy.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "frontend/graph/rewrite.h"
#include "frontend/graph/verifier.h"
#include "sylvite/graph_text.h"

namespace sylvite::copy_test {
namespace {

/// A value in blocks, a node with two outputs, an unread input and constant, and outputs under names of their
/// own: one value under two of them, and an input.
Graph sample() {
  Graph graph;
  graph.name = "sample";
  const ValueId x = graph.add_input("x", make_type(DType::f32, {1, 32, 2, 4}));
  (void)graph.add_input("unread", make_type(DType::f32, {2}));
  (void)graph.add_constant(Tensor::scalar_f32(3), "unread_constant");
  const ValueId blocked = graph.add(Op::to_layout, {x}, {{"block", std::int64_t{16}}}, "to_blocks");
  const ValueId relu = graph.add(Op::relu, {blocked}, {}, "activation");
  graph.value(relu).type.layout.channel_block = 16;
  const ValueId dense = graph.add(Op::to_layout, {relu}, {{"block", std::int64_t{0}}});
  const ValueId two = graph.add_constant(Tensor::scalar_f32(2), "two");
  const ValueId twice = graph.add(Op::mul, {dense, two});
  const std::vector<ValueId> top = graph.add_node(
      Op::top_k, {twice}, {{"axis", std::int64_t{3}}, {"k", Dims{2}}, {"largest", std::int64_t{1}}});
  graph.rename(top[0], "v1");  // names that canonical ones clash with
  graph.rename(top[1], "v0");
  (void)graph.add(Op::neg, {twice});
  graph.outputs = {twice, top[0], top[1], twice, x};
  graph.output_names = {"first", "values", "places", "again"};
  return graph;
}

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> names;
  names.reserve(graph.outputs.size());
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) names.push_back(graph.output_name(i));
  return names;
}

Graph copy_of(const Graph& graph) {
  GraphCopier copier(graph);
  copier.add_inputs();
  for (const Node& node : graph.nodes()) copier.copy(node);
  return copier.finish();
}

TEST(GraphCopier, CopiesWhatWasLeftOnceItIsAsked) {
  const Graph graph = sample();
  GraphCopier copier(graph);
  copier.add_inputs();
  for (const Node& node : graph.nodes()) copier.leave(node);
  EXPECT_TRUE(copier.is_unchanged());
  EXPECT_TRUE(copier.is_mapped(graph.outputs[0]));
  EXPECT_FALSE(copier.is_unchanged());
  EXPECT_TRUE(same_structure(graph, copier.finish()));
  GraphCopier other(graph);
  other.add_inputs();
  for (const Node& node : graph.nodes()) node.op == Op::top_k ? other.copy(node) : other.leave(node);
  EXPECT_TRUE(same_structure(graph, other.finish())) << "in the order in which they were left and copied";
}

TEST(GraphCopier, KeepsNamesTypesLayoutsAndOutputs) {
  const Graph graph = sample();
  const Graph copy = copy_of(graph);
  verify(copy);
  EXPECT_EQ(copy.name, graph.name);
  EXPECT_TRUE(same_structure(graph, copy));
  EXPECT_EQ(output_names(copy), output_names(graph));
  EXPECT_EQ(copy.inputs.size(), 2U);
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node &before = graph.nodes()[i], &after = copy.nodes()[i];
    EXPECT_EQ(after.name, before.name);
    for (std::size_t k = 0; k < before.outputs.size(); ++k) {
      EXPECT_EQ(copy.value(after.outputs[k]).name, graph.value(before.outputs[k]).name);
      EXPECT_EQ(copy.type(after.outputs[k]), graph.type(before.outputs[k]));
    }
  }
}

TEST(GraphCopier, LeavesTheNameOfWhatStandsForAnother) {
  const Graph graph = sample();
  GraphCopier copier(graph);
  copier.add_inputs();
  const ValueId x = copier.mapped(graph.inputs[0]);
  copier.set(graph.outputs[0], x);
  EXPECT_EQ(copier.mapped(graph.outputs[0]), x);
  EXPECT_EQ(copier.graph().value(x).name, "x");
}

TEST(GraphCopier, RefusesOutputsOfAnotherShape) {
  const Graph graph = sample();
  GraphCopier copier(graph);
  copier.add_inputs();
  std::vector<ValueId> outputs(graph.outputs.size(), copier.mapped(graph.inputs[1]));
  EXPECT_THROW((void)copier.finish(outputs), InternalError);
}

TEST(GraphCopier, RefusesValuesThatWereNotCopied) {
  const Graph graph = sample();
  GraphCopier copier(graph);
  EXPECT_THROW((void)copier.mapped(graph.outputs[0]), InternalError);
}

TEST(Canonical, GraphsThatDifferInNamesHaveEqualText) {
  Graph other = sample();
  for (std::size_t i = 0; i < other.values().size(); ++i)
    other.rename(static_cast<ValueId>(i), "other" + std::to_string(i));
  const Graph result = canonical(sample());
  verify(result);
  EXPECT_EQ(graph_text(result), graph_text(canonical(other)));
  EXPECT_EQ(result.value(result.outputs[1]).name, "v4");
  EXPECT_EQ(result.value(result.outputs[2]).name, "v5");
  EXPECT_EQ(result.value(result.inputs[1]).name, "in1");
  EXPECT_TRUE(result.nodes()[0].name.empty());
}

TEST(DeadNodes, AreDroppedWithTheirConstants) {
  const Graph graph = sample();
  const IdMap<bool> is_live = live_nodes(graph);
  EXPECT_EQ(std::vector<bool>(is_live.begin(), is_live.end()),
            (std::vector<bool>{true, true, true, true, true, false}));
  const Graph live = without_dead_nodes(graph);
  verify(live);
  EXPECT_EQ(live.nodes().size(), 5U);
  EXPECT_EQ(live.inputs.size(), 2U) << "inputs stay";
  EXPECT_EQ(live.values().size(), graph.values().size() - 2) << "a result and a constant";
  EXPECT_EQ(output_names(live), output_names(graph));
}

}  // namespace
}  // namespace sylvite::copy_test
