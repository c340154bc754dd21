// What is computed of elements of small constants.

#include <algorithm>

#include "frontend/graph/graph_builder.h"
#include "frontend/graph/interpreter.h"
#include "frontend/graph/rewrite.h"
#include "frontend/passes/pass_list.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::fold_lookups_test {
namespace {

struct Lookup {
  Graph graph;
  GraphBuilder builder{graph};
  Sym place = builder.input("place", DType::i64, {4, 1});
  Sym element = gather(builder.reals(DType::f32, {3}, {1, 4, -2}), place, 0);
};

Graph folded(const Graph& before) {
  Graph after = fold_lookups(before);
  verify(after);
  const Tensor places = Tensor::of<std::int64_t>(DType::i64, {4, 1}, {2, 0, 1, -1});
  const std::vector<Tensor> wanted = interpret(before, {places}), found = interpret(after, {places});
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(found[i].type(), wanted[i].type());
    EXPECT_EQ(values(found[i]), values(wanted[i]));
  }
  return after;
}

std::ptrdiff_t count(const Graph& graph, Op op) {
  return std::ranges::count(graph.nodes(), op, &Node::op);
}

TEST(FoldLookups, WhatIsComputedOfOneElementIsLookedUp) {
  Lookup l;
  const Sym path = where(apply(Op::greater, l.element, 0.5), apply(Op::log, l.element), 0.0);
  const Sym again = gather(l.builder.integers({7, 5, 6, 9, 8}), cast(l.element, DType::i64), 0);
  l.builder.output(reshape(path, {4}) + reshape(cast(again, DType::f32), {4}), "y");
  const Graph after = folded(l.graph);
  EXPECT_EQ(count(after, Op::gather), 1);
  EXPECT_EQ(count(after, Op::log) + count(after, Op::where) + count(after, Op::add), 0);
}

TEST(FoldLookups, ASumOfOneElementIsThatElement) {
  Lookup l;
  l.builder.output(reduce(Op::reduce_sum, l.element, {1}, false) * 2.0, "y");
  const Graph after = folded(l.graph);
  EXPECT_EQ(count(after, Op::reduce_sum) + count(after, Op::mul), 0);
  EXPECT_EQ(after.type(after.outputs[0]).dims(), Dims{4});
}

/// Words of several numbers, as trees have them, are taken apart where they were looked up.
TEST(FoldLookups, MoreGathersThanThereWereAreNoGain) {
  Lookup l;
  l.builder.output(apply(Op::exp, l.element), "high");
  l.builder.output(l.element * l.element, "low");
  EXPECT_TRUE(same_structure(fold_lookups(l.graph), l.graph));
}

TEST(FoldLookups, LeavesOtherOperandsAlone) {
  Lookup l;
  const Sym x = l.builder.input("x", DType::f32, {4, 1});
  const Sym other = l.builder.reals(DType::f32, {4, 1}, {1, 2, 3, 4});
  l.builder.output(l.element + x, "of_an_input");
  l.builder.output(l.element + other, "of_rows");
  l.builder.output(reduce(Op::reduce_sum, l.element, {0}), "of_all");
  l.builder.output(l.element + l.builder.reals(DType::f32, {1, 2}, {1, 2}), "of_columns");
  EXPECT_TRUE(same_structure(fold_lookups(l.graph), l.graph));
}

/// An element that no index takes may lie outside of the second table.
TEST(FoldLookups, PlacesOutsideOfATableStayIndices) {
  Lookup l;
  const Sym place = gather(l.builder.integers({0, 1, 9, 0}), l.place, 0);
  l.builder.output(gather(l.builder.reals(DType::f32, {2}, {5, 6}), place, 0), "y");
  EXPECT_EQ(count(fold_lookups(l.graph), Op::gather), 2);
}

}  // namespace
}  // namespace sylvite::fold_lookups_test
