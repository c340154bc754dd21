#include <gtest/gtest.h>

#include "frontend/graph/rewrite.h"
#include "lowering/passes/pass_list.h"
#include "tests/lowering/sample_graphs.h"

namespace sylvite::raise_reshapes_test {
namespace {

TEST(RaiseReshapes, WorkJoinsTheProductThatReadsIt) {
  Graph graph;
  const ValueId a = graph.add_input("a", f32({6, 5})), b = graph.add_input("b", f32({5, 4}));
  const ValueId x = graph.add_input("x", f32({2, 3, 4})), rows = graph.add_input("rows", f32({2, 3, 1}));
  const ValueId work = graph.add(Op::tanh, {graph.add(Op::mul, {x, rows})});
  const ValueId product = graph.add(Op::matmul, {a, b});
  graph.outputs = {graph.add(Op::mul, {product, reshape(graph, work, {6, 4})})};
  const Graph raised = raise_reshapes(graph);
  for (const Node& node : raised.nodes())
    if (node.op == Op::tanh) EXPECT_EQ(raised.type(node.outputs[0]).dims(), (Dims{6, 4}));
  EXPECT_EQ(lower(graph).launches.size(), 1U);
  expect_lowers_faithfully(graph);
}

/// The gradient of a loss: logits in batches, work by rows, a result in batches.
TEST(RaiseReshapes, OperandsOfWhatIsRaisedAreRaisedBack) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 4})), rows = graph.add_input("rows", f32({6, 1}));
  const ValueId work = reshape(graph, graph.add(Op::tanh, {x}), {6, 4});
  graph.outputs = {graph.add(Op::exp, {reshape(graph, graph.add(Op::sub, {work, rows}), {2, 3, 4})})};
  const Graph raised = raise_reshapes(graph);
  for (const Node& node : raised.nodes())
    if (node.op == Op::sub) EXPECT_EQ(raised.type(node.outputs[0]).dims(), (Dims{2, 3, 4}));
  EXPECT_EQ(lower(graph).launches.size(), 1U);
  expect_lowers_faithfully(graph);
}

/// log(sum) + largest, both of folds that keep their dims, which a reshape drops ahead of other work.
TEST(RaiseReshapes, FoldsDropTheirDimsWhereWorkStandsBehind) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({3, 5, 4})), z = graph.add_input("z", f32({3, 4}));
  const Attributes fold = {{"axes", Dims{1}}, {"keepdims", std::int64_t{1}}};
  const ValueId most = graph.add(Op::abs, {graph.add(Op::reduce_max, {x}, fold)});
  const ValueId sum = graph.add(Op::reduce_sum, {graph.add(Op::exp, {graph.add(Op::sub, {x, most})})}, fold);
  const ValueId whole = graph.add(Op::add, {graph.add(Op::log, {sum}), most});
  graph.outputs = {graph.add(Op::add, {reshape(graph, whole, {3, 4}), z})};
  EXPECT_EQ(lower(graph).launches.size(), 2U);
  expect_lowers_faithfully(graph);
}

/// The shape of its operand is that of its result, too, but only the result may lose the dim.
TEST(RaiseReshapes, FoldsOverOneElementReadTheirOperandAsItIs) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({1, 5, 4})), z = graph.add_input("z", f32({5, 4}));
  const Attributes fold = {{"axes", Dims{0}}, {"keepdims", std::int64_t{1}}};
  const ValueId most = graph.add(Op::abs, {graph.add(Op::reduce_max, {x}, fold)});
  const ValueId sum = graph.add(Op::reduce_sum, {graph.add(Op::exp, {graph.add(Op::sub, {x, most})})}, fold);
  const ValueId whole = graph.add(Op::add, {graph.add(Op::log, {sum}), most});
  graph.outputs = {graph.add(Op::add, {reshape(graph, whole, {5, 4}), z})};
  expect_lowers_faithfully(graph);
}

TEST(RaiseReshapes, FoldsKeepTheirDimsWhereNoWorkStandsBehind) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({3, 5, 4}));
  const Attributes fold = {{"axes", Dims{1}}, {"keepdims", std::int64_t{1}}};
  graph.outputs = {reshape(graph, graph.add(Op::exp, {graph.add(Op::reduce_sum, {x}, fold)}), {3, 4})};
  EXPECT_TRUE(same_structure(raise_reshapes(graph), graph));
}

TEST(RaiseReshapes, LeavesWhatOthersReadAsItIs) {
  const auto with = [](ValueId (*other)(Graph&, ValueId)) {
    Graph graph;
    const ValueId x = graph.add_input("x", f32({2, 3, 4})), y = graph.add_input("y", f32({3, 4}));
    const ValueId work = graph.add(Op::tanh, {graph.add(Op::add, {x, y})});
    graph.outputs = {graph.add(Op::exp, {reshape(graph, work, {6, 4})}), other(graph, work)};
    return graph;
  };
  const Graph graphs[] = {
      with([](Graph&, ValueId work) { return work; }),
      with([](Graph& graph, ValueId work) { return graph.add(Op::neg, {work}); }),
      with([](Graph& graph, ValueId work) { return graph.add(Op::neg, {reshape(graph, work, {24})}); }),
      with([](Graph& graph, ValueId work) {  // rows of y do not repeat as rows
        return graph.add(Op::neg, {reshape(graph, work, {6, 4})});
      })};
  for (const Graph& graph : graphs) {
    EXPECT_TRUE(same_structure(raise_reshapes(graph), graph));
    expect_lowers_faithfully(graph);
  }
}

/// A norm's gradient: x - mean over its deviation is read by rows, and by columns of rows that a reshape joined.
Graph read_by_rows_and_columns(bool is_cheap) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 64, 48})), mean = graph.add_input("mean", f32({2, 64, 1}));
  const ValueId scale = graph.add_input("scale", f32({2, 64, 1})),
                slope = graph.add_input("slope", f32({2, 64, 48}));
  const ValueId centred = graph.add(Op::sub, {x, mean});
  const ValueId normal = graph.add(is_cheap ? Op::mul : Op::pow, {centred, scale});
  const ValueId products = graph.add(Op::mul, {slope, normal});
  graph.outputs = {graph.add(Op::reduce_sum, {reshape(graph, products, {128, 48})}, {{"axes", Dims{0}}}),
                   graph.add(Op::reduce_max, {normal}, {{"axes", Dims{2}}})};
  return graph;
}

TEST(RaiseReshapes, RepeatsWhatOthersReadAsItIs) {
  const Graph graph = read_by_rows_and_columns(true);
  EXPECT_EQ(lower(graph).launches.size(), 2U) << "nothing is stored but the results";
  expect_lowers_faithfully(graph);
  const Graph costly = read_by_rows_and_columns(false);
  EXPECT_TRUE(same_structure(raise_reshapes(costly), costly));
}

/// What is repeated has the dims of its own, not those of the work that it is repeated along.
TEST(RaiseReshapes, RepeatsWhatIsTheSameAlongRows) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({2, 3, 4})), a = graph.add_input("a", f32({2, 3, 1}));
  const ValueId rows = graph.add(Op::add, {a, graph.add_input("b", f32({1}))});
  const ValueId work = graph.add(Op::mul, {x, rows});
  graph.outputs = {graph.add(Op::exp, {reshape(graph, work, {6, 4})}),
                   graph.add(Op::reduce_max, {rows}, {{"axes", Dims{1}}})};
  const Graph raised = raise_reshapes(graph);
  for (const Node& node : raised.nodes())
    if (node.op == Op::mul) EXPECT_EQ(raised.type(node.outputs[0]).dims(), (Dims{6, 4}));
  expect_lowers_faithfully(graph);
}

TEST(RaiseReshapes, ResultsHaveAsManyDimsAsAreWanted) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({4})), one = graph.add_input("one", f32({1, 1, 1}));
  graph.outputs = {graph.add(Op::exp, {reshape(graph, graph.add(Op::sub, {x, one}), {1, 1, 1, 4})})};
  const Graph raised = raise_reshapes(graph);
  for (const Node& node : raised.nodes())
    if (node.op == Op::sub) EXPECT_EQ(raised.type(node.outputs[0]).dims(), (Dims{1, 1, 1, 4}));
  expect_lowers_faithfully(graph);
}

/// A mask of which row is less than which column has no operand of all dims.
TEST(RaiseReshapes, RepeatedWorkHasAsManyDimsAsAreWanted) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({1, 5})), y = graph.add_input("y", f32({4, 1}));
  const ValueId mask = graph.add(Op::cast, {graph.add(Op::less, {x, y})}, {{"to", "f32"}});
  const ValueId apart = reshape(graph, mask, {1, 4, 5});
  graph.outputs = {graph.add(Op::pad, {apart}, {{"low", Dims{0, 1, 0}}, {"high", Dims{0, 0, 0}}}),
                   graph.add(Op::exp, {apart})};
  expect_lowers_faithfully(graph);
}

TEST(RaiseReshapes, LeavesWhatNoOperandIsAsLargeAs) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({3, 1})), y = graph.add_input("y", f32({4}));
  graph.outputs = {graph.add(Op::exp, {reshape(graph, graph.add(Op::sub, {x, y}), {12})})};
  EXPECT_TRUE(same_structure(raise_reshapes(graph), graph));
  expect_lowers_faithfully(graph);
}

/// A product that several read is in memory: weighed rows are summed by the kernel that weighs them.
TEST(RaiseReshapes, WorkOnProductsThatSeveralReadMeetsItsFold) {
  Graph graph;
  const ValueId x = graph.add_input("x", f32({24, 5})), w = graph.add_input("w", f32({5, 4}));
  const ValueId weights = graph.add_input("weights", f32({2, 3, 4, 4}));
  const ValueId made = graph.add(Op::matmul, {x, w});
  const ValueId weighed = graph.add(Op::mul, {reshape(graph, weights, {24, 4}), made});
  const ValueId rows = reshape(graph, weighed, {2, 3, 4, 4});
  graph.outputs = {graph.add(Op::reduce_sum, {rows}, {{"axes", Dims{2}}, {"keepdims", std::int64_t{0}}}),
                   graph.add(Op::exp, {made})};
  const Graph raised = raise_reshapes(graph);
  for (const Node& node : raised.nodes())
    if (node.op == Op::mul) EXPECT_EQ(raised.type(node.outputs[0]).dims(), (Dims{2, 3, 4, 4}));
  expect_lowers_faithfully(graph);
}

TEST(RaiseReshapes, LeavesTheEpilogueOfAProduct) {
  Graph graph;
  const ValueId a = graph.add_input("a", f32({2, 3, 5})), b = graph.add_input("b", f32({2, 5, 4}));
  const ValueId work = graph.add(Op::tanh, {graph.add(Op::matmul, {a, b})});
  graph.outputs = {graph.add(Op::exp, {reshape(graph, work, {6, 4})})};
  EXPECT_TRUE(same_structure(raise_reshapes(graph), graph));
}

}  // namespace
}  // namespace sylvite::raise_reshapes_test
