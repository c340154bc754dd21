#include "frontend/graph/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sylvite::verifier_test {
namespace {

/// x -> relu -> softmax, with a constant aside.
Graph small_graph() {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {2, 2}));
  (void)graph.add_constant(Tensor(DType::f32, {2}), "w");
  const ValueId y = graph.add(Op::relu, {x}, {}, "first");
  graph.outputs = {graph.add(Op::softmax, {y}, {{"axis", std::int64_t{1}}})};
  return graph;
}

constexpr ValueId x_id = 0;
constexpr ValueId w_id = 1;
constexpr ValueId y_id = 2;

Node& node(Graph& graph, NodeId id) {
  return const_cast<Node&>(graph.node(id));
}

void expect_broken(const Graph& graph, const std::string& message) {
  try {
    verify(graph);
    FAIL() << "expected: " << message;
  } catch (const InternalError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(message));
  }
}

TEST(Verifier, AcceptsASoundGraph) {
  EXPECT_NO_THROW(verify(small_graph()));
  EXPECT_NO_THROW(verify(Graph()));
}

TEST(Verifier, IgnoresLayoutsChosenLater) {
  Graph graph = small_graph();
  graph.value(y_id).type.layout.channel_block = 16;
  EXPECT_NO_THROW(verify(graph));
}

TEST(Verifier, FollowsNoBrokenIds) {
  Graph graph = small_graph();
  graph.outputs = {99};
  expect_broken(graph, "ids: graph outputs names value 99");
  graph = small_graph();
  graph.inputs = {no_value};
  expect_broken(graph, "ids: graph inputs names value -1");
  graph = small_graph();
  node(graph, 1).inputs = {-7};
  expect_broken(graph, "ids: node 1 (softmax");
  graph = small_graph();
  node(graph, 1).op = static_cast<Op>(9999);  // NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange): corrupt
  expect_broken(graph, "corrupt operation 9999");
  graph = small_graph();
  graph.value(y_id).producer = 5;
  expect_broken(graph, "value 'v2' names producer 5");
}

TEST(Verifier, FindsNamesInConflict) {
  Graph graph = small_graph();
  graph.value(y_id).name = "x";
  expect_broken(graph, "names: two values are called 'x'");
  graph.value(y_id).name = "";
  expect_broken(graph, "names: a value has no name");
}

TEST(Verifier, FindsValuesWithoutOneSource) {
  Graph graph = small_graph();
  graph.value(w_id).constant.reset();
  expect_broken(graph, "producers: value 'w' comes from 0 places");
  graph = small_graph();
  graph.value(x_id).constant = Tensor(DType::f32, {2, 2});
  expect_broken(graph, "producers: value 'x' comes from 2 places");
  graph = small_graph();
  graph.value(y_id).producer = 1;
  expect_broken(graph, "producers: value 'v2' does not name node 0 (relu 'first') as its producer");
}

TEST(Verifier, FindsNodesOutOfOrder) {
  Graph graph = small_graph();
  node(graph, 0).inputs = {graph.outputs[0]};
  expect_broken(graph, "order: node 0 (relu 'first') reads");
}

TEST(Verifier, FindsNodesThatDoNotFitTheirRow) {
  Graph graph = small_graph();
  node(graph, 0).inputs = {};
  expect_broken(graph, "types: node 0 (relu 'first') has 0 inputs, expected 1 to 1");
  graph = small_graph();
  node(graph, 0).inputs = {no_value};
  expect_broken(graph, "lacks input 0");
  graph = small_graph();
  node(graph, 1).attributes = {};
  expect_broken(graph, "lacks attribute 'axis'");
  node(graph, 1).attributes = {{"axis", 1.0}};
  expect_broken(graph, "has attribute 'axis' of another kind");
  node(graph, 1).attributes = {{"axis", std::int64_t{1}}, {"more", std::int64_t{1}}};
  expect_broken(graph, "has attributes that its operation does not know");
}

TEST(Verifier, FindsTypesThatBreakTheRule) {
  Graph graph = small_graph();
  graph.value(y_id).type.shape[0] = 3;
  expect_broken(graph, "types: node 0 (relu 'first'): 'v2' is f32[3,2], its rule says f32[2,2]");
  graph = small_graph();
  node(graph, 1).attributes.set("axis", std::int64_t{2});
  expect_broken(graph, "axis 2 is outside a value of rank 2");
  graph = small_graph();
  graph.value(w_id).type.dtype = DType::i32;
  expect_broken(graph, "values: constant 'w' is i32[2], its tensor f32[2]");
  graph = small_graph();
  graph.value(w_id).type.layout.channel_block = 8;
  expect_broken(graph, "values: value 'w' cannot have the layout");
}

}  // namespace
}  // namespace sylvite::verifier_test
