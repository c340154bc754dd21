// Folds of columns, side by side.

#include <algorithm>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::join_columns_test {
namespace {

/// Products of columns i and j for all pairs of them, behind the columns by themselves and ones.
Graph pairs(std::int64_t columns, Op fold) {
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::f32, {3, columns});
  std::vector<Sym> parts = {builder.filled(DType::f32, {3, 1}, 1)};
  for (std::int64_t i = 0; i < columns; ++i) parts.push_back(reduce(fold, slice(x, 1, i, i + 1), {1}));
  for (std::int64_t i = 0; i < columns; ++i)
    for (std::int64_t j = i; j < columns; ++j)
      parts.push_back(reduce(fold, gather(x, builder.integers({i, j - columns}), 1), {1}));
  builder.output(concat(parts, 1), "y");
  return graph;
}

TEST(JoinColumns, FoldsOfColumnsAreOneFold) {
  for (const Op fold : {Op::reduce_prod, Op::reduce_max}) {
    const Graph before = pairs(5, fold);
    const Graph after = join_columns(before);
    verify(after);
    EXPECT_EQ(std::ranges::count(after.nodes(), fold, &Node::op), 2);
    const Tensor x = counting({3, 5});
    EXPECT_EQ(values(interpret(after, {x})[0]), values(interpret(before, {x})[0]));
  }
}

TEST(JoinColumns, LeavesFewAndOthersAlone) {
  const Graph few = join_columns(pairs(2, Op::reduce_prod));
  EXPECT_EQ(std::ranges::count(few.nodes(), Op::reduce_prod, &Node::op), 5);
  Graph graph;
  GraphBuilder builder(graph);
  const Sym x = builder.input("x", DType::f32, {6, 6});
  std::vector<Sym> parts;
  parts.reserve(6);
  for (std::int64_t i = 0; i < 6; ++i) parts.push_back(reduce(Op::reduce_prod, slice(x, 0, i, i + 1), {1}));
  builder.output(concat(parts, 1), "y");
  EXPECT_TRUE(same_structure(join_columns(graph), graph));
}

/// The steps of an axis that is taken whole may be -1.
TEST(JoinColumns, LeavesTurnedRowsAlone) {
  Graph graph;
  const ValueId x = graph.add_input("x", make_type(DType::f32, {3, 12}));
  std::vector<ValueId> parts;
  for (std::int64_t i = 0; i < 12; ++i) {
    const ValueId column =
        graph.add(Op::slice, {x}, {{"starts", Dims{2, i}}, {"sizes", Dims{3, 1}}, {"steps", Dims{-1, 1}}});
    parts.push_back(graph.add(Op::reduce_prod, {column}, {{"axes", Dims{1}}, {"keepdims", std::int64_t{1}}}));
  }
  graph.outputs = {graph.add(Op::concat, parts, {{"axis", std::int64_t{1}}})};
  const Tensor given = counting({3, 12});
  EXPECT_EQ(values(interpret(join_columns(graph), {given})[0]), values(interpret(graph, {given})[0]));
}

}  // namespace
}  // namespace sylvite::join_columns_test
