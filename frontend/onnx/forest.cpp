#include "frontend/onnx/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "frontend/graph/loop_builder.h"

namespace sylvite {
namespace {

constexpr int most_levels = 1000;
constexpr double infinity = std::numeric_limits<double>::infinity();

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

/// Steps from these nodes to the deepest leaf. A graph with a cycle never ends, so more levels than nodes are an error.
int depth_of(const Forest& forest, const std::vector<std::int64_t>& roots) {
  std::vector<std::int64_t> level;
  const auto add = [&](std::vector<std::int64_t>& list, std::int64_t node) {
    if (node < forest.inner()) list.push_back(node);
  };
  for (const std::int64_t root : roots) add(level, root);
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

/// `axis`: the one of x that has the features.
Sym conditions(const Forest& forest, const NodeTables& tables, Sym x, Sym at, std::int64_t axis) {
  const Sym value =
      x.builder().add(Op::gather_elements, {x, gather(tables.feature, at, 0)}, {{"axis", axis}});
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

/// Can NaN take the true branches where it must as the smallest number? Then every feature is there twice.
bool tracks_by_features(const Forest& forest) {
  bool is_tracked = false;
  for (std::size_t node = 0; node < forest.tracks.size(); ++node) {
    if (forest.tracks[node] == 0) continue;
    is_tracked = true;
    const std::int64_t mode = forest.mode[node];
    const double split = forest.splits.as_double(static_cast<std::int64_t>(node));
    if ((mode != less_or_equal && mode != less) || !(split > -infinity)) return false;
  }
  return is_tracked;
}

/// Behind the features of x, the same with the smallest number in place of NaN, which the nodes look at that track NaN.
Sym double_features(Forest& forest, Sym x) {
  for (std::size_t node = 0; node < forest.tracks.size(); ++node)
    if (forest.tracks[node] != 0) forest.feature[node] += x.dim(1);
  forest.tracks.clear();
  return concat({x, where(apply(Op::is_nan, x), -infinity, x)}, 1);
}

/// Trees that are walked down together, by so many steps.
struct Trees {
  std::vector<std::int64_t> roots;
  int depth = 0;
};

/// What a walk takes, in elements; a step by itself takes as long as some.
std::int64_t cost_of(std::int64_t trees, int depth, std::int64_t rows) {
  constexpr std::int64_t of_a_step = 512;
  return depth * (trees * rows + of_a_step);
}

/// Puts the shallow ones of the last trees, which are sorted by depth, by themselves if that takes a tenth less.
bool split_last(std::vector<Trees>& parts, const std::vector<int>& depths, std::int64_t rows) {
  Trees& last = parts.back();
  const auto count = static_cast<std::int64_t>(last.roots.size());
  const auto first = static_cast<std::int64_t>(depths.size()) - count;
  const std::int64_t whole = cost_of(count, last.depth, rows);
  std::int64_t best = whole - whole / 10, at = 0;
  for (std::int64_t i = 1; i < count; ++i) {
    const int depth = depths[static_cast<std::size_t>(first + i)];
    const std::int64_t cost = cost_of(i, last.depth, rows) + cost_of(count - i, depth, rows);
    if (cost < best) std::tie(best, at) = std::pair(cost, i);
  }
  if (at == 0) return false;
  Trees rest{{last.roots.begin() + at, last.roots.end()}, depths[static_cast<std::size_t>(first + at)]};
  last.roots.resize(static_cast<std::size_t>(at));
  parts.push_back(std::move(rest));
  return true;
}

/// The trees, the deepest first, by parts of like depth.
std::vector<Trees> by_depth(const Forest& forest, std::int64_t rows) {
  constexpr std::size_t most_parts = 4;
  std::vector<std::pair<int, std::int64_t>> trees;
  for (const std::int64_t root : forest.roots) trees.emplace_back(-depth_of(forest, {root}), root);
  std::ranges::stable_sort(trees, {}, &std::pair<int, std::int64_t>::first);
  std::vector<Trees> parts = {{{}, -trees[0].first}};
  std::vector<int> depths;
  for (const auto& [depth, root] : trees) {
    depths.push_back(-depth);
    parts[0].roots.push_back(root);
  }
  while (parts.size() < most_parts && split_last(parts, depths, rows)) {
  }
  return parts;
}

struct Walk {
  const Forest& forest;
  const NodeTables& tables;
};

/// Where rows of x end: [rows, trees]. From a vector of rows on, these are innermost: neighbours walk down one tree, whose
/// nodes are then near.
Sym walk_down(const Walk& walk, Sym x) {
  constexpr std::int64_t vector = 16;
  GraphBuilder& b = x.builder();
  const std::int64_t rows = x.dim(0);
  const bool is_turned = rows >= vector;
  const Sym features = is_turned ? swap_axes(x, 0, 1) : x;
  std::vector<Sym> ends;
  for (const Trees& trees : by_depth(walk.forest, rows)) {
    const auto count = static_cast<std::int64_t>(trees.roots.size());
    const Sym roots = numbers(b, trees.roots);
    Sym at = is_turned ? broadcast_to(reshape(roots, {count, 1}), {count, rows})
                       : broadcast_to(reshape(roots, {1, count}), {rows, count});
    for (int step = 0; step < trees.depth; ++step) {
      const Sym holds = conditions(walk.forest, walk.tables, features, at, is_turned ? 0 : 1);
      at = gather(walk.tables.next, at * 2.0 + cast(holds, DType::i32), 0);
    }
    ends.push_back(at);
  }
  const Sym all = ends.size() == 1 ? ends[0] : concat(ends, is_turned ? 0 : 1);
  return is_turned ? swap_axes(all, 0, 1) : all;
}

/// The same by parts of so many rows that what lies between the levels stays near; kernels are then those of a part,
/// whatever the number of rows.
Sym walk_by_parts(const Walk& walk, Sym x) {
  constexpr std::int64_t part = 64, most_at_once = 1 << 17;
  const std::int64_t rows = x.dim(0), features = x.dim(1),
                     trees = static_cast<std::int64_t>(walk.forest.roots.size());
  const std::int64_t trips = (rows + part - 1) / part;
  GraphBuilder& b = x.builder();
  if (rows * trees <= most_at_once || !may_loop(b, trips)) return walk_down(walk, x);
  const Sym whole = b.add(Op::pad, {x}, {{"low", Dims{0, 0}}, {"high", Dims{trips * part - rows, 0}}});
  const LoopSpec spec{trips, false, {{}, {reshape(whole, {trips, part, features})}}};
  const TripValues walked = run_loop(
      b, spec, [&](const TripValues& given) { return TripValues{{}, {walk_down(walk, given.slices[0])}}; });
  return slice(reshape(walked.slices[0], {trips * part, trees}), 0, 0, rows);
}

}  // namespace

Sym reached_leaves(Forest forest, Sym x) {
  check_lists(forest, x);
  (void)depth_of(forest, forest.roots);
  if (tracks_by_features(forest)) x = double_features(forest, x);
  const NodeTables tables = node_tables(x.builder(), forest, x.dtype());
  return walk_by_parts({forest, tables}, x) - static_cast<double>(forest.inner());
}

Sym fold_leaves(Sym reached, const std::vector<LeafWeight>& weights, std::int64_t leaves,
                std::int64_t targets, Aggregate aggregate, DType dtype) {
  GraphBuilder& b = reached.builder();
  if (targets < 1) throw ModelError("there are {} targets, expected at least 1", targets);
  const bool is_sum = aggregate == Aggregate::sum || aggregate == Aggregate::average;
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
