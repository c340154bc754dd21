#include "frontend/onnx/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace sylvite {
namespace {

constexpr int most_levels = 1000;

void check_lists(const Forest& forest, Sym x) {
  const auto inner = static_cast<std::size_t>(forest.inner());
  if (x.rank() != 2) throw ModelError("the input has rank {}, expected 2", x.rank());
  if (forest.next_true.size() != inner || forest.next_false.size() != inner || forest.mode.size() != inner ||
      forest.splits.size() != forest.inner() || (!forest.tracks.empty() && forest.tracks.size() != inner))
    throw ModelError("the lists of nodes have different lengths");
  for (const std::int64_t feature : forest.feature)
    if (feature < 0 || feature >= x.dim(1))
      throw ModelError("a node looks at feature {}, the input has {}", feature, x.dim(1));
  for (const std::int64_t mode : forest.mode)
    if (mode < less_or_equal || mode > member) throw ModelError("a node has the unknown mode {}", mode);
  const std::int64_t count = forest.inner() + forest.leaves;
  for (const auto* list : {&forest.next_true, &forest.next_false, &forest.roots})
    for (const std::int64_t node : *list)
      if (node < 0 || node >= count) throw ModelError("a node leads to {}, which does not exist", node);
  if (forest.roots.empty()) throw ModelError("there are no trees");
}

/// Steps to the deepest leaf. A graph with a cycle never ends, so more levels than nodes are an error.
int depth_of(const Forest& forest) {
  std::vector<std::int64_t> level;
  const auto add = [&](std::vector<std::int64_t>& list, std::int64_t node) {
    if (node < forest.inner()) list.push_back(node);
  };
  for (const std::int64_t root : forest.roots) add(level, root);
  int depth = 0;
  while (!level.empty()) {
    ++depth;
    if (depth > forest.inner()) throw ModelError("a tree has a cycle: a node leads back to itself");
    if (depth > most_levels)
      throw UnsupportedError("the trees are deeper than {}, or have a cycle", most_levels);
    std::vector<std::int64_t> below;
    for (const std::int64_t node : level)
      for (const auto* next : {&forest.next_true, &forest.next_false})
        add(below, (*next)[static_cast<std::size_t>(node)]);
    std::sort(below.begin(), below.end());
    below.erase(std::unique(below.begin(), below.end()), below.end());
    level = std::move(below);
  }
  return depth;
}

/// What every level reads, one element per node. A leaf leads to itself. Absent: not needed.
struct NodeTables {
  Sym feature, split, mode, members, tracks;
  Sym next;  ///< two per node: where it leads when its condition fails, and when it holds
};

Sym numbers(GraphBuilder& b, const std::vector<std::int64_t>& values) {
  Tensor table(DType::i32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) table.set_int64(static_cast<std::int64_t>(i), values[i]);
  return b.constant(table);
}

Sym padded(GraphBuilder& b, std::vector<std::int64_t> values, std::int64_t count) {
  values.resize(static_cast<std::size_t>(count));
  return numbers(b, values);
}

/// The sets of the nodes with mode member, one row each, filled up with NaN, which equals nothing.
Sym member_table(GraphBuilder& b, const Forest& forest, std::int64_t count, DType dtype) {
  std::size_t width = 1;
  for (const std::vector<double>& set : forest.sets) width = std::max(width, set.size());
  const Dims dims{count, static_cast<std::int64_t>(width)};
  b.reserve_table(dims);
  std::vector<double> table(static_cast<std::size_t>(count) * width,
                            std::numeric_limits<double>::quiet_NaN());
  for (std::size_t row = 0; row < forest.sets.size(); ++row)
    std::copy(forest.sets[row].begin(), forest.sets[row].end(),
              table.begin() + static_cast<std::ptrdiff_t>(row * width));
  return b.reals(dtype, dims, table);
}

NodeTables node_tables(GraphBuilder& b, const Forest& forest, DType dtype) {
  const std::int64_t count = forest.inner() + forest.leaves;
  b.reserve_table({6, count});
  NodeTables tables;
  tables.feature = padded(b, forest.feature, count);
  Tensor splits(dtype, {count});
  std::vector<std::int64_t> next;
  for (std::int64_t node = 0; node < count; ++node) {
    const bool is_inner = node < forest.inner();
    splits.set_double(node, is_inner ? forest.splits.as_double(node) : 0);
    next.push_back(is_inner ? forest.next_false[static_cast<std::size_t>(node)] : node);
    next.push_back(is_inner ? forest.next_true[static_cast<std::size_t>(node)] : node);
  }
  tables.split = b.constant(splits);
  tables.next = numbers(b, next);
  const std::vector<std::int64_t>& modes = forest.mode;
  const bool has_one_mode =
      std::adjacent_find(modes.begin(), modes.end(), std::not_equal_to<>()) == modes.end();
  if (!has_one_mode) tables.mode = padded(b, modes, count);
  if (std::find(modes.begin(), modes.end(), member) != modes.end())
    tables.members = member_table(b, forest, count, dtype);
  if (std::find(forest.tracks.begin(), forest.tracks.end(), 1) != forest.tracks.end())
    tables.tracks = padded(b, forest.tracks, count);
  return tables;
}

/// Whether the condition of each node in `at` holds, were all nodes of this mode.
Sym condition(const NodeTables& tables, NodeMode mode, Sym value, Sym split, Sym at) {
  constexpr Op comparisons[] = {Op::less_equal, Op::less, Op::greater_equal, Op::greater, Op::equal};
  if (mode == not_equal) return apply(Op::logical_not, apply(Op::equal, value, split));
  if (mode != member) return apply(comparisons[mode], value, split);
  const Sym set = gather(tables.members, at, 0);
  const Sym is_item = cast(apply(Op::equal, unsqueeze(value, {-1}), set), DType::i32);
  return apply(Op::greater, reduce(Op::reduce_max, is_item, {is_item.rank() - 1}, false), 0.0);
}

Sym conditions(const Forest& forest, const NodeTables& tables, Sym x, Sym at) {
  const Sym value =
      x.builder().add(Op::gather_elements, {x, gather(tables.feature, at, 0)}, {{"axis", std::int64_t{1}}});
  const Sym split = gather(tables.split, at, 0);
  Sym holds;
  for (int mode = less_or_equal; mode <= member; ++mode) {
    if (std::find(forest.mode.begin(), forest.mode.end(), mode) == forest.mode.end()) continue;
    const Sym now = condition(tables, static_cast<NodeMode>(mode), value, split, at);
    holds = !holds ? now : where(apply(Op::equal, gather(tables.mode, at, 0), mode), now, holds);
  }
  if (!tables.tracks) return holds;
  const Sym goes_true = apply(Op::equal, gather(tables.tracks, at, 0), 1.0);
  return apply(Op::logical_or, holds, apply(Op::logical_and, apply(Op::is_nan, value), goes_true));
}

}  // namespace

Sym reached_leaves(const Forest& forest, Sym x) {
  check_lists(forest, x);
  const int depth = depth_of(forest);
  GraphBuilder& b = x.builder();
  const auto trees = static_cast<std::int64_t>(forest.roots.size());
  const NodeTables tables = node_tables(b, forest, x.dtype());
  Sym at = broadcast_to(reshape(numbers(b, forest.roots), {1, trees}), {x.dim(0), trees});
  for (int step = 0; step < depth; ++step) {
    const Sym holds = cast(conditions(forest, tables, x, at), DType::i32);
    at = gather(tables.next, at * 2.0 + holds, 0);
  }
  return at - static_cast<double>(forest.inner());
}

Sym fold_leaves(Sym reached, const std::vector<LeafWeight>& weights, std::int64_t leaves,
                std::int64_t targets, Aggregate aggregate, DType dtype) {
  GraphBuilder& b = reached.builder();
  if (targets < 1) throw ModelError("there are {} targets, expected at least 1", targets);
  const bool is_sum = aggregate == Aggregate::sum || aggregate == Aggregate::average;
  const double infinity = std::numeric_limits<double>::infinity();
  const double nothing = is_sum ? 0 : aggregate == Aggregate::minimum ? infinity : -infinity;
  b.reserve_table({leaves, targets});
  std::vector<double> table(static_cast<std::size_t>(leaves * targets), nothing);
  for (const LeafWeight& entry : weights) {
    if (entry.leaf < 0 || entry.leaf >= leaves) throw ModelError("leaf {} does not exist", entry.leaf);
    if (entry.target < 0 || entry.target >= targets)
      throw ModelError("a leaf has target {}, there are {}", entry.target, targets);
    double& value = table[static_cast<std::size_t>(entry.leaf * targets + entry.target)];
    value = is_sum                            ? value + entry.weight
            : aggregate == Aggregate::minimum ? std::min(value, entry.weight)
                                              : std::max(value, entry.weight);
  }
  const auto trees = static_cast<double>(reached.dim(1));
  if (targets == 1 && is_sum) {
    const Sym sum = reduce(Op::reduce_sum, gather(b.reals(dtype, {leaves}, table), reached, 0), {1});
    return aggregate == Aggregate::average ? sum / trees : sum;
  }
  const Sym rows = gather(b.reals(dtype, {leaves, targets}, table), reached, 0);  // [rows, trees, targets]
  if (is_sum) {
    const Sym sum = reduce(Op::reduce_sum, rows, {1}, false);
    return aggregate == Aggregate::average ? sum / trees : sum;
  }
  const Op op = aggregate == Aggregate::minimum ? Op::reduce_min : Op::reduce_max;
  const Sym best = reduce(op, rows, {1}, false);
  return where(apply(Op::equal, best, nothing), 0.0, best);
}

}  // namespace sylvite
