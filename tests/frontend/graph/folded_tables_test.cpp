#include "frontend/graph/folded_tables.h"

#include <gtest/gtest.h>

#include "frontend/graph/graph_builder.h"

namespace sylvite::folded_tables_test {
namespace {

/// Angles of `count` positions from `first` on, as importers make them.
Tensor angles(std::int64_t first, std::int64_t count) {
  Graph graph;
  GraphBuilder b(graph);
  const Sym positions = b.iota(DType::i64, {count}, 0) + static_cast<double>(first);
  const Sym column = reshape(cast(positions, DType::f32), {count, 1});
  const Sym frequencies = b.reals(DType::f32, {1, 2}, {1.0, 0.25});
  return apply(Op::cos, column * frequencies).constant();
}

TEST(FoldedTables, FollowFromTheNumbersThatFoldsRead) {
  const TableReadings here = readings_of(angles(3, 4)), there = readings_of(angles(700, 9));
  ASSERT_TRUE(here && there);
  EXPECT_EQ(here->at(0).rule, there->at(0).rule);
  const Tensor made = here->at(0).make(there->at(0).numbers), wanted = angles(700, 9);
  EXPECT_EQ(made.dims(), wanted.dims());
  for (std::int64_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(made.as_double(i), wanted.as_double(i)) << i;
}

/// One position is an integer by itself and a table that is short: it is made both ways.
TEST(FoldedTables, OneNumberIsReadInBothWays) {
  const TableReadings one = readings_of(angles(3, 1)), many = readings_of(angles(3, 4));
  ASSERT_TRUE(one && many);
  ASSERT_GE(one->size(), 2U);
  EXPECT_EQ(one->at(0).rule, many->at(0).rule);
  EXPECT_EQ(one->back().make(one->back().numbers).as_double(1), angles(3, 1).as_double(1));
}

/// What a node reads twice counts twice: such chains are no tables once they are long.
TEST(FoldedTables, EndWhereTheyWouldReadManyNumbers) {
  Graph graph;
  GraphBuilder b(graph);
  Sym x = b.iota(DType::i64, {16}, 0);
  EXPECT_TRUE(readings_of(x.constant()));
  for (int i = 0; i < 8; ++i) x = x + x;
  EXPECT_FALSE(readings_of(x.constant()));
}

TEST(FoldedTables, WeightsAreNone) {
  Graph graph;
  GraphBuilder b(graph);
  const Sym weight = b.reals(DType::f32, {2}, {1.5, 2.5});
  EXPECT_FALSE(readings_of((weight * weight).constant()));
}

}  // namespace
}  // namespace sylvite::folded_tables_test
