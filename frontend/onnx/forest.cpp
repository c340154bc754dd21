#include "frontend/onnx/forest.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "frontend/graph/loop_builder.h"

namespace sylvite {
namespace {

constexpr int most_levels = 1000;
constexpr double infinity = std::numeric_limits<double>::infinity();

void check_lists(const Forest& forest) {
  const auto inner = static_cast<std::size_t>(forest.inner());
  if (forest.next_true.size() != inner || forest.next_false.size() != inner || forest.mode.size() != inner ||
      forest.splits.size() != forest.inner() || (!forest.tracks.empty() && forest.tracks.size() != inner))
    throw ModelError("the lists of nodes have different lengths");
  for (const std::int64_t mode : forest.mode)
    if (mode < less_or_equal || mode > member) throw ModelError("a node has the unknown mode {}", mode);
  const std::int64_t count = forest.inner() + forest.leaves;
  for (const auto* list : {&forest.next_true, &forest.next_false, &forest.roots})
    for (const std::int64_t node : *list)
      if (node < 0 || node >= count) throw ModelError("a node leads to {}, which does not exist", node);
  if (forest.roots.empty()) throw ModelError("there are no trees");
}

/// A graph with a cycle never ends, so more levels than nodes are an error.
void check_depth(const Forest& forest) {
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
}

/// Where nodes lie in the tables: first the roots, then the two that a node leads to side by side.
struct Places {
  std::vector<std::int64_t> nodes;  ///< of the forest, by place
  std::vector<std::int64_t>
      next;  ///< by place: where it leads when its condition fails; one further when it holds
};

/// A node that several lead to has a place for each.
Places places_of(const Forest& forest) {
  Places places{forest.roots, {}};
  const std::size_t most = 4 * static_cast<std::size_t>(forest.inner() + forest.leaves) + places.nodes.size();
  for (std::size_t place = 0; place < places.nodes.size(); ++place) {
    const std::int64_t node = places.nodes[place];
    const bool is_inner = node < forest.inner();
    places.next.push_back(static_cast<std::int64_t>(is_inner ? places.nodes.size() : place));
    if (!is_inner) continue;
    places.nodes.push_back(forest.next_false[static_cast<std::size_t>(node)]);
    places.nodes.push_back(forest.next_true[static_cast<std::size_t>(node)]);
    if (places.nodes.size() > most) throw UnsupportedError("the trees share too many nodes");
  }
  return places;
}

/// Elements of a table of places: powers of two, so that kernels for trees of like sizes are equal.
std::int64_t table_size(const Places& places) {
  return static_cast<std::int64_t>(std::bit_ceil(places.nodes.size()));
}

/// What every level reads, one element per place. A leaf leads to itself, as its condition never holds. Absent: not needed.
struct NodeTables {
  Sym word;  ///< the feature, and where it leads: feature 2^bits + next
  int bits = 0;
  Sym split, mode, members, tracks;
  Sym leaf;  ///< the number of a leaf
};

Sym numbers(GraphBuilder& b, const std::vector<std::int64_t>& values) {
  Tensor table(DType::i32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) table.set_int64(static_cast<std::int64_t>(i), values[i]);
  return b.constant(table);
}

/// The sets of the nodes with mode member, one row each, filled up with NaN, which equals nothing.
Sym member_table(GraphBuilder& b, const Forest& forest, const Places& places, DType dtype) {
  std::size_t width = 1;
  for (const std::vector<double>& set : forest.sets) width = std::max(width, set.size());
  const Dims dims{static_cast<std::int64_t>(places.nodes.size()), static_cast<std::int64_t>(width)};
  b.reserve_table(dims);
  std::vector<double> table(places.nodes.size() * width, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t place = 0; place < places.nodes.size(); ++place) {
    const auto node = static_cast<std::size_t>(places.nodes[place]);
    if (node < forest.sets.size())
      std::ranges::copy(forest.sets[node], table.begin() + static_cast<std::ptrdiff_t>(place * width));
  }
  return b.reals(dtype, dims, table);
}

Sym words(GraphBuilder& b, const Forest& forest, const Places& places, int bits) {
  const std::int64_t count = table_size(places);
  const std::int64_t most = forest.feature.empty() ? 0 : *std::ranges::max_element(forest.feature);
  const bool is_short = most < std::numeric_limits<std::int32_t>::max() >> bits;
  Tensor table(is_short ? DType::i32 : DType::i64, {count});
  for (std::int64_t place = 0; place < static_cast<std::int64_t>(places.nodes.size()); ++place) {
    const std::int64_t node = places.nodes[static_cast<std::size_t>(place)];
    const std::int64_t feature = node < forest.inner() ? forest.feature[static_cast<std::size_t>(node)] : 0;
    table.set_int64(place, (feature << bits) + places.next[static_cast<std::size_t>(place)]);
  }
  return b.constant(table);
}

NodeTables node_tables(GraphBuilder& b, const Forest& forest, const Places& places, DType dtype) {
  const std::int64_t count = table_size(places);
  b.reserve_table({6, count});
  NodeTables tables;
  while ((std::int64_t{1} << tables.bits) < count) ++tables.bits;
  tables.word = words(b, forest, places, tables.bits);
  const bool is_tracked = std::ranges::find(forest.tracks, 1) != forest.tracks.end();
  Tensor splits(dtype, {count});
  std::vector<std::int64_t> modes(static_cast<std::size_t>(count)), tracks = modes, leaves = modes;
  for (std::size_t place = 0; place < places.nodes.size(); ++place) {
    const std::int64_t node = places.nodes[place];
    const bool is_inner = node < forest.inner();
    splits.set_double(static_cast<std::int64_t>(place),
                      is_inner ? forest.splits.as_double(node) : std::numeric_limits<double>::quiet_NaN());
    if (!is_inner) {
      leaves[place] = node - forest.inner();
      continue;
    }
    modes[place] = forest.mode[static_cast<std::size_t>(node)];
    if (is_tracked) tracks[place] = forest.tracks[static_cast<std::size_t>(node)];
  }
  tables.split = b.constant(splits);
  tables.leaf = numbers(b, leaves);
  if (std::ranges::adjacent_find(forest.mode, std::not_equal_to<>()) != forest.mode.end())
    tables.mode = numbers(b, modes);
  if (std::ranges::find(forest.mode, member) != forest.mode.end())
    tables.members = member_table(b, forest, places, dtype);
  if (is_tracked) tables.tracks = numbers(b, tracks);
  return tables;
}

/// Whether the condition of each node in `at` holds, were all nodes of this mode.
Sym condition(const NodeTables& tables, NodeMode mode, Sym value, Sym split, Sym at) {
  constexpr Op comparisons[] = {Op::less_equal, Op::less, Op::greater_equal, Op::greater, Op::equal};
  if (mode != member) return apply(comparisons[mode], value, split);
  const Sym set = gather(tables.members, at, 0);
  const Sym is_item = cast(apply(Op::equal, unsqueeze(value, {-1}), set), DType::i32);
  return apply(Op::greater, reduce(Op::reduce_max, is_item, {is_item.rank() - 1}, false), 0.0);
}

Sym conditions(const Forest& forest, const NodeTables& tables, Sym value, Sym at) {
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

/// Then no condition holds for NaN.
void make_equal(Forest& forest) {
  for (std::size_t node = 0; node < forest.mode.size(); ++node) {
    if (forest.mode[node] != not_equal) continue;
    forest.mode[node] = equal;
    std::swap(forest.next_true[node], forest.next_false[node]);
    if (!forest.tracks.empty()) forest.tracks[node] = 0;
  }
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

/// Trees whose leaves are reached by so many steps.
struct Trees {
  std::vector<std::int64_t> roots;  ///< their places
  int depth = 0;
};

/// Lets the shallow ones of the last trees, which are sorted by depth, stop early if that saves a tenth of their walk.
bool split_last(std::vector<Trees>& parts, const std::vector<int>& depths, std::int64_t rows) {
  constexpr std::int64_t of_a_step = 52;  ///< elements in whose time a step is begun
  Trees& last = parts.back();
  const auto count = static_cast<std::int64_t>(last.roots.size());
  const auto first = static_cast<std::int64_t>(depths.size()) - count;
  std::int64_t best = last.depth * (count * rows + of_a_step) / 10, at = 0;
  for (std::int64_t i = 1; i < count; ++i) {
    const int depth = depths[static_cast<std::size_t>(first + i)];
    const std::int64_t saved = (last.depth - depth) * (count - i) * rows;
    if (saved > best) std::tie(best, at) = std::pair(saved, i);
  }
  if (at == 0) return false;
  Trees rest{{last.roots.begin() + at, last.roots.end()}, depths[static_cast<std::size_t>(first + at)]};
  last.roots.resize(static_cast<std::size_t>(at));
  parts.push_back(std::move(rest));
  return true;
}

/// Steps from a node to the deepest leaf; `heights` has those of inner nodes, or 0. REQUIRES no cycle.
int height_of(const Forest& forest, std::int64_t node, std::vector<int>& heights) {
  if (node >= forest.inner()) return 0;
  const auto at = static_cast<std::size_t>(node);
  if (heights[at] == 0)
    heights[at] = 1 + std::max(height_of(forest, forest.next_true[at], heights),
                               height_of(forest, forest.next_false[at], heights));
  return heights[at];
}

/// The trees, the deepest first, by parts of like depth.
std::vector<Trees> by_depth(const Forest& forest, std::int64_t rows) {
  constexpr std::size_t most_parts = 4;
  std::vector<std::pair<int, std::int64_t>> trees;
  trees.reserve(forest.roots.size());
  std::vector<int> heights(static_cast<std::size_t>(forest.inner()));
  for (const std::int64_t root : forest.roots)
    trees.emplace_back(-height_of(forest, root, heights), static_cast<std::int64_t>(trees.size()));
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

/// One level down. `axis`: the one of x that has the features.
Sym next_places(const Walk& walk, Sym x, Sym at, std::int64_t axis) {
  const NodeTables& tables = walk.tables;
  GraphBuilder& b = x.builder();
  const Sym word = gather(tables.word, at, 0);
  const DType type = word.dtype();
  const Sym feature = apply(Op::shift_right, word, b.scalar(type, tables.bits));
  const Sym value = b.add(Op::gather_elements, {x, feature}, {{"axis", axis}});
  const auto mask = static_cast<double>((std::int64_t{1} << tables.bits) - 1);
  const Sym next = apply(Op::bitwise_and, word, b.scalar(type, mask));
  return next + cast(conditions(walk.forest, tables, value, at), type);
}

/// Fewer than a vector has lanes.
bool is_few_rows(std::int64_t rows) {
  constexpr std::int64_t vector = 16;
  return rows < vector;
}

/// The leaves where rows of x end: [rows, trees]. All trees walk together, and shallow ones stop first. From a vector of rows on,
/// these are innermost: neighbours walk down one tree, whose nodes are then near.
Sym walk_down(const Walk& walk, Sym x) {
  GraphBuilder& b = x.builder();
  const std::int64_t rows = x.dim(0);
  const bool is_turned = !is_few_rows(rows);
  const Sym features = is_turned ? swap_axes(x, 0, 1) : x;
  const std::int64_t axis = is_turned ? 0 : 1;
  const std::vector<Trees> parts = by_depth(walk.forest, rows);
  std::vector<std::int64_t> places;
  for (const Trees& trees : parts) places.insert(places.end(), trees.roots.begin(), trees.roots.end());
  auto count = static_cast<std::int64_t>(places.size());
  const Sym roots = numbers(b, places);
  Sym at = is_turned ? broadcast_to(reshape(roots, {count, 1}), {count, rows})
                     : broadcast_to(reshape(roots, {1, count}), {rows, count});
  at = cast(at, walk.tables.word.dtype());
  std::vector<Sym> ends;
  int step = 0;
  for (auto trees = parts.rbegin(); trees != parts.rend(); ++trees) {
    for (; step < trees->depth; ++step) at = next_places(walk, features, at, axis);
    const std::int64_t deeper = count - static_cast<std::int64_t>(trees->roots.size());
    const Sym done = slice(at, axis, deeper, count);
    ends.insert(ends.begin(), gather(walk.tables.leaf, done, 0));
    if (deeper > 0) at = slice(at, axis, 0, deeper);
    count = deeper;
  }
  const Sym all = ends.size() == 1 ? ends[0] : concat(ends, axis);
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

void settle_forest(Forest& forest) {
  check_lists(forest);
  check_depth(forest);
  make_equal(forest);
}

void check_features(const Forest& forest, std::int64_t features) {
  for (const std::int64_t feature : forest.feature)
    if (feature < 0 || feature >= features)
      throw ModelError("a node looks at feature {}, the input has {}", feature, features);
}

Sym reached_leaves(Forest forest, Sym x) {
  if (x.rank() != 2) throw ModelError("the input has rank {}, expected 2", x.rank());
  settle_forest(forest);
  check_features(forest, x.dim(1));
  if (tracks_by_features(forest)) x = double_features(forest, x);
  const NodeTables tables = node_tables(x.builder(), forest, places_of(forest), x.dtype());
  return walk_by_parts({forest, tables}, x);
}

double nothing_of(Aggregate aggregate) {
  if (aggregate == Aggregate::sum || aggregate == Aggregate::average) return 0;
  return aggregate == Aggregate::minimum ? infinity : -infinity;
}

std::vector<double> leaf_table(const std::vector<LeafWeight>& weights, std::int64_t leaves,
                               std::int64_t targets, Aggregate aggregate) {
  const bool is_sum = aggregate == Aggregate::sum || aggregate == Aggregate::average;
  std::vector<double> table(static_cast<std::size_t>(leaves * targets), nothing_of(aggregate));
  for (const LeafWeight& entry : weights) {
    if (entry.leaf < 0 || entry.leaf >= leaves) throw ModelError("leaf {} does not exist", entry.leaf);
    if (entry.target < 0 || entry.target >= targets)
      throw ModelError("a leaf has target {}, there are {}", entry.target, targets);
    double& value = table[static_cast<std::size_t>(entry.leaf * targets + entry.target)];
    value = is_sum                            ? value + entry.weight
            : aggregate == Aggregate::minimum ? std::min(value, entry.weight)
                                              : std::max(value, entry.weight);
  }
  return table;
}

Sym fold_leaves(Sym reached, const std::vector<LeafWeight>& weights, std::int64_t leaves,
                std::int64_t targets, Aggregate aggregate, DType dtype) {
  GraphBuilder& b = reached.builder();
  if (targets < 1) throw ModelError("there are {} targets, expected at least 1", targets);
  const bool is_sum = aggregate == Aggregate::sum || aggregate == Aggregate::average;
  b.reserve_table({leaves, targets});
  const std::vector<double> table = leaf_table(weights, leaves, targets, aggregate);
  const auto trees = static_cast<double>(reached.dim(1));
  if (targets == 1 && is_sum) {
    const Sym sum = reduce(Op::reduce_sum, gather(b.reals(dtype, {leaves}, table), reached, 0), {1});
    return aggregate == Aggregate::average ? sum / trees : sum;
  }
  const Sym weights_of = b.reals(dtype, {leaves, targets}, table);
  const Op op = is_sum ? Op::reduce_sum : aggregate == Aggregate::minimum ? Op::reduce_min : Op::reduce_max;
  // Of few rows the trees are lanes, of many the targets of a leaf are read together.
  const Sym best =
      is_few_rows(reached.dim(0))
          ? swap_axes(reduce(op, gather(swap_axes(weights_of, 0, 1), reached, 1), {2}, false), 0, 1)
          : reduce(op, gather(weights_of, reached, 0), {1}, false);
  if (is_sum) return aggregate == Aggregate::average ? best / trees : best;
  return where(apply(Op::equal, best, nothing_of(aggregate)), 0.0, best);
}

}  // namespace sylvite
