#include "sylvite/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sylvite::graph_test {
namespace {

using testing::HasSubstr;

const TensorType pair_type = make_type(DType::f32, {2});

template <typename ExpectedError, typename Action>
void expect_error(const Action& action, const std::string& message) {
  try {
    action();
    FAIL() << "expected: " << message;
  } catch (const ExpectedError& error) {
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST(Attributes, GettersCheckPresenceAndKind) {
  const Attributes attributes = {{"axis", std::int64_t{1}}, {"mode", "edge"}};
  EXPECT_EQ(attributes.integer("axis"), 1);
  EXPECT_EQ(attributes.string("mode"), "edge");
  EXPECT_THROW((void)attributes.integer("absent"), InternalError);
  EXPECT_THROW((void)attributes.real("axis"), InternalError);
  EXPECT_THROW((void)attributes.integers("axis"), InternalError);
}

TEST(Graph, NamesAreUnique) {
  Graph graph;
  const ValueId a = graph.add_input("x", pair_type);
  const ValueId b = graph.add_input("x", pair_type);
  const ValueId c = graph.add_input("", pair_type);
  EXPECT_EQ(graph.value(a).name, "x");
  EXPECT_EQ(graph.value(b).name, "x_1");
  EXPECT_EQ(graph.value(c).name, "v2");
  graph.rename(c, "x");
  EXPECT_EQ(graph.value(c).name, "x_2");
  graph.rename(a, "y");
  graph.rename(c, "x");
  EXPECT_EQ(graph.value(c).name, "x");
  graph.rename(c, "");
  EXPECT_EQ(graph.value(c).name, "x");
}

TEST(Graph, ManyEqualNamesStayCheap) {
  Graph graph;
  for (int i = 0; i < 20000; ++i) (void)graph.add_input("same", pair_type);
  EXPECT_EQ(graph.value(19999).name, "same_19999");
}

TEST(Graph, HasValuesOfAFewDims) {
  Graph graph;
  (void)graph.add_input("x", make_type(DType::f32, Dims(64, 1)));
  EXPECT_THROW((void)graph.add_input("y", make_type(DType::f32, Dims(65, 1))), UnsupportedError);
}

TEST(Graph, FillsInDefaults) {
  Graph graph;
  const ValueId x = graph.add_input("x", pair_type);
  (void)graph.add(Op::hard_sigmoid, {x}, {{"beta", 0.25}});
  EXPECT_EQ(graph.node(0).attributes.real("alpha"), 0.2);
  EXPECT_EQ(graph.node(0).attributes.real("beta"), 0.25);
}

TEST(Graph, DropsAbsentInputsAtTheEnd) {
  Graph graph;
  const ValueId x = graph.add_input("x", pair_type);
  (void)graph.add(Op::layer_norm, {x, no_value, no_value}, {{"axis", std::int64_t{0}}});
  EXPECT_EQ(graph.node(0).inputs, std::vector<ValueId>{x});
  (void)graph.add(Op::layer_norm, {x, no_value, x}, {{"axis", std::int64_t{0}}});
  EXPECT_EQ(graph.node(1).inputs, (std::vector<ValueId>{x, no_value, x}));
}

TEST(Graph, RefusesNodesThatDoNotFit) {
  Graph graph;
  const ValueId x = graph.add_input("x", pair_type);
  const auto add = [&](Op op, const std::vector<ValueId>& inputs, const Attributes& attributes = {}) {
    return [&graph, op, inputs, attributes] { (void)graph.add(op, inputs, attributes, "here"); };
  };
  expect_error<ModelError>(add(Op::relu, {}), "relu 'here': got 0 inputs, expected 1 to 1");
  expect_error<ModelError>(add(Op::relu, {x, x}), "got 2 inputs");
  expect_error<ModelError>(add(Op::add, {no_value, x}), "input 0 is required");
  expect_error<ModelError>(add(Op::relu, {x}, {{"alpha", 1.0}}), "relu 'here': no attribute 'alpha'");
  expect_error<ModelError>(add(Op::softmax, {x}), "attribute 'axis' is required");
  expect_error<ModelError>(add(Op::softmax, {x}, {{"axis", 1.0}}), "attribute 'axis' is of another kind");
  expect_error<ModelError>(add(Op::softmax, {x}, {{"axis", std::int64_t{1}}}),
                           "softmax 'here': axis 1 is outside");
  expect_error<InternalError>(add(Op::relu, {7}), "relu 'here': the graph has no value 7");
  EXPECT_TRUE(graph.nodes().empty());
  EXPECT_EQ(graph.values().size(), 1U);
}

TEST(Graph, KeepsTheKindOfAnError) {
  Graph graph;
  const ValueId x = graph.add_input("x", pair_type);
  const ValueId i = graph.add_input("i", {DType::i64, {Extent::symbol("N")}, {}});
  expect_error<UnknownExtentError>([&] { (void)graph.add(Op::gather_nd, {x, i}, {}, "here"); },
                                   "gather_nd 'here': extent 'N' is not known");
}

TEST(Graph, ListsUses) {
  Graph graph;
  const ValueId x = graph.add_input("x", pair_type);
  const ValueId y = graph.add(Op::add, {x, x});
  (void)graph.add(Op::relu, {x});
  const auto uses = graph.uses();
  EXPECT_EQ(uses[x], (std::vector<NodeId>{0, 0, 1}));
  EXPECT_TRUE(uses[y].empty());
  EXPECT_FALSE(graph.is_constant(no_value));
}

}  // namespace
}  // namespace sylvite::graph_test
