// Forests beside a walk down each tree by itself.

#include "frontend/onnx/forest.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "base/error.h"
#include "frontend/graph/copy.h"
#include "frontend/onnx/known_forest.h"
#include "tests/frontend/ops/run_op.h"

namespace sylvite::forest_test {
namespace {

constexpr std::int64_t features = 5;

/// Trees of random depth, up to `depth`; leaves lead nowhere and are numbered from 0 once all inner nodes are known.
struct Grower {
  std::mt19937 generator{1};
  Forest forest;
  std::vector<NodeMode> modes;

  std::int64_t draw(std::int64_t count) {
    return static_cast<std::int64_t>(generator() % static_cast<unsigned>(count));
  }

  /// The number of an inner node, or -1 - the number of a leaf.
  std::int64_t grow(int depth) {
    if (depth == 0 || draw(4) == 0) return -1 - forest.leaves++;
    const auto node = static_cast<std::size_t>(forest.inner());
    const NodeMode mode = modes[static_cast<std::size_t>(draw(static_cast<std::int64_t>(modes.size())))];
    forest.feature.push_back(draw(features));
    forest.mode.push_back(mode);
    forest.tracks.push_back(draw(2));
    forest.sets.push_back(mode == member ? std::vector<double>{1, -2} : std::vector<double>{});
    forest.next_true.push_back(0);
    forest.next_false.push_back(0);
    const std::int64_t holds = grow(depth - 1), fails = grow(depth - 1);
    forest.next_true[node] = holds;
    forest.next_false[node] = fails;
    return static_cast<std::int64_t>(node);
  }

  Forest finish(int trees) {
    for (int i = 0; i < trees; ++i) forest.roots.push_back(grow(i % 7 == 0 ? 9 : 3));
    for (auto* list : {&forest.next_true, &forest.next_false, &forest.roots})
      for (std::int64_t& node : *list) node = node < 0 ? forest.inner() - 1 - node : node;
    forest.splits = Tensor(DType::f32, {forest.inner()});
    for (std::int64_t i = 0; i < forest.inner(); ++i)
      forest.splits.set_double(i, static_cast<double>(draw(5)) - 2);
    return forest;
  }
};

bool holds(const Forest& forest, std::size_t node, double x) {
  const double split = forest.splits.as_double(static_cast<std::int64_t>(node));
  if (std::isnan(x) && forest.tracks[node] != 0) return true;
  switch (forest.mode[node]) {
    case less_or_equal:
      return x <= split;
    case less:
      return x < split;
    case greater_or_equal:
      return x >= split;
    case greater:
      return x > split;
    case equal:
      return x == split;
    case not_equal:
      return x != split;
    default:
      return std::ranges::find(forest.sets[node], x) != forest.sets[node].end();
  }
}

std::int64_t walk(const Forest& forest, std::int64_t node, const Tensor& x, std::int64_t row) {
  while (node < forest.inner()) {
    const auto at = static_cast<std::size_t>(node);
    node = holds(forest, at, x.as_double(row * features + forest.feature[at])) ? forest.next_true[at]
                                                                               : forest.next_false[at];
  }
  return node - forest.inner();
}

/// Integers, so that features meet splits, and some NaN and infinities.
Tensor sample(std::int64_t rows) {
  std::mt19937 generator(2);
  Tensor x(DType::f32, {rows, features});
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const auto number = static_cast<int>(generator() % 12);
    x.set_double(i, number < 9     ? number - 4
                    : number == 9  ? not_a_number
                    : number == 10 ? infinity
                                   : -infinity);
  }
  return x;
}

void expect_walks(const std::vector<NodeMode>& modes, std::int64_t rows, int trees) {
  Grower grower;
  grower.modes = modes;
  const Forest forest = grower.finish(trees);
  Graph graph;
  GraphBuilder builder(graph);
  builder.output(reached_leaves(forest, builder.input("x", DType::f32, {rows, features})), "leaves");
  const Tensor x = sample(rows);
  const Tensor leaves = interpret(without_dead_nodes(graph), {x})[0];
  ASSERT_EQ(leaves.dims(), (Dims{rows, trees}));
  // Trees come in another order, the deepest first.
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<std::int64_t> got, wanted;
    for (std::int64_t tree = 0; tree < trees; ++tree) {
      got.push_back(leaves.as_int64(row * trees + tree));
      wanted.push_back(walk(forest, forest.roots[static_cast<std::size_t>(tree)], x, row));
    }
    std::ranges::sort(got);
    std::ranges::sort(wanted);
    ASSERT_EQ(got, wanted) << "row " << row;
  }
}

TEST(Forest, RowsReachTheirLeaves) {
  const std::vector<std::vector<NodeMode>> lists = {{less_or_equal},
                                                    {less},
                                                    {not_equal},
                                                    {less_or_equal, equal},
                                                    {less, greater, greater_or_equal, member, not_equal}};
  for (const std::vector<NodeMode>& modes : lists) {
    SCOPED_TRACE(modes.size() * 10 + static_cast<std::size_t>(modes[0]));
    expect_walks(modes, 1, 40);
    expect_walks(modes, 40, 40);
  }
}

TEST(Forest, ManyRowsGoByParts) {
  expect_walks({less_or_equal}, 701, 200);
}

/// Rows that are known, each walking by itself, beside tables that all rows walk down together.
void expect_alike(const std::vector<NodeMode>& modes, Aggregate aggregate, DType dtype) {
  constexpr std::int64_t rows = 37, targets = 3;
  Grower grower;
  grower.modes = modes;
  const Forest forest = grower.finish(20);
  std::vector<LeafWeight> weights;
  for (std::int64_t leaf = 0; leaf < forest.leaves; ++leaf)
    for (std::int64_t target = 0; target < targets - 1; ++target)  // nothing adds to the last one
      if (grower.draw(3) > 0) weights.push_back({leaf, target, static_cast<double>(grower.draw(9)) / 4 - 1});
  Graph graph;
  GraphBuilder builder(graph);
  const Sym reached = reached_leaves(forest, builder.input("x", dtype, {rows, features}));
  builder.output(fold_leaves(reached, weights, forest.leaves, targets, aggregate, dtype), "y");
  const Tensor few = sample(rows);
  Tensor x(dtype, few.dims());
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, few.as_double(i));
  const Tensor expected = interpret(without_dead_nodes(graph), {x})[0];
  const Tensor actual = KnownForest(forest, weights, targets, aggregate, dtype).scores(x);
  ASSERT_EQ(actual.type(), expected.type());
  for (std::int64_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(actual.as_double(i), expected.as_double(i), 1e-6) << "element " << i;
}

TEST(Forest, KnownRowsHaveTheSameScores) {
  for (const Aggregate aggregate :
       {Aggregate::average, Aggregate::sum, Aggregate::minimum, Aggregate::maximum})
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(static_cast<int>(aggregate) * 10 + (dtype == DType::f64 ? 1 : 0));
      expect_alike({less_or_equal}, aggregate, dtype);
      expect_alike({less, equal, greater, greater_or_equal, member, not_equal}, aggregate, dtype);
    }
}

TEST(Forest, KnownRowsNeedTheFeatures) {
  Grower grower;
  grower.modes = {less};
  const Forest forest = grower.finish(9);
  const KnownForest known(forest, {{0, 0, 1.0}}, 1, Aggregate::sum, DType::f32);
  EXPECT_THROW((void)known.scores(Tensor(DType::f32, {2, 1})), ModelError);
}

}  // namespace
}  // namespace sylvite::forest_test
