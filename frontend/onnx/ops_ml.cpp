// Operators of ai.onnx.ml: tables and decision trees.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/error.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

constexpr std::string_view domain = "ai.onnx.ml";

void binarizer(ImportContext& c) {
  const Sym x = c.input(0);
  c.output(cast(apply(Op::greater, x, c.real("threshold", 0)), x.dtype()));
}

/// The keys or values of a label encoder: strings, or numbers as a tensor.
struct Labels {
  bool are_strings = false;
  std::vector<std::string> strings;
  Tensor numbers;
};

Labels read_labels(ImportContext& c, const std::string& side) {
  if (c.has_attribute(side + "_strings")) return {true, c.strings(side + "_strings"), {}};
  if (c.is_string_tensor(side + "_tensor")) return {true, c.string_tensor(side + "_tensor").values, {}};
  if (c.has_attribute(side + "_tensor")) return {false, {}, c.tensor(side + "_tensor")};
  if (c.has_attribute(side + "_int64s")) return {false, {}, Tensor::vector_i64(c.integers(side + "_int64s"))};
  const std::vector<double> reals = c.reals(side + "_floats");
  Tensor numbers(DType::f32, {static_cast<std::int64_t>(reals.size())});
  for (std::size_t i = 0; i < reals.size(); ++i) numbers.set_double(static_cast<std::int64_t>(i), reals[i]);
  return {false, {}, numbers};
}

/// Text that is equal where keys are: NaN is a key like any other.
std::string key_text(const Tensor& numbers, std::int64_t i) {
  if (!is_float(numbers.dtype())) return std::to_string(numbers.as_int64(i));
  const double number = numbers.as_double(i);
  return std::isnan(number) ? "nan" : fmt::format("{:a}", number == 0 ? 0.0 : number);
}

std::int64_t label_count(const Labels& labels) {
  return labels.are_strings ? static_cast<std::int64_t>(labels.strings.size()) : labels.numbers.size();
}

std::string key_text(const Labels& labels, std::int64_t i) {
  return labels.are_strings ? labels.strings[static_cast<std::size_t>(i)] : key_text(labels.numbers, i);
}

/// The only element of a tensor attribute.
Tensor default_label(ImportContext& c) {
  Tensor label = c.tensor("default_tensor");
  if (label.size() != 1) throw ModelError("default_tensor has {} elements, expected 1", label.size());
  return label;
}

void output_labels(ImportContext& c, const Labels& values, const Dims& dims,
                   const std::vector<std::int64_t>& rows) {
  if (values.are_strings) {
    std::string fallback = c.string("default_string", "_Unused");
    if (c.is_string_tensor("default_tensor")) fallback = c.string_tensor("default_tensor").values.at(0);
    StringTensor result{dims, {}};
    for (const std::int64_t row : rows)
      result.values.push_back(row < 0 ? fallback : values.strings.at(static_cast<std::size_t>(row)));
    return c.output_strings(0, std::move(result));
  }
  Tensor result(values.numbers.dtype(), dims);
  const bool is_real = is_float(result.dtype());
  const bool has_tensor = c.has_attribute("default_tensor");
  const double real = has_tensor ? default_label(c).as_double(0) : c.real("default_float", -0.0);
  const std::int64_t integer = has_tensor ? default_label(c).as_int64(0) : c.integer("default_int64", -1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (is_real)
      result.set_double(at, rows[i] < 0 ? real : values.numbers.as_double(rows[i]));
    else
      result.set_int64(at, rows[i] < 0 ? integer : values.numbers.as_int64(rows[i]));
  }
  c.output(c.builder().constant(result));
}

void label_encoder(ImportContext& c) {
  const Labels keys = read_labels(c, "keys");
  const Labels values = read_labels(c, "values");
  std::map<std::string, std::int64_t> rows;
  for (std::int64_t i = 0; i < label_count(keys); ++i)
    rows.emplace(key_text(keys, i), static_cast<std::int64_t>(rows.size()));
  if (static_cast<std::int64_t>(rows.size()) != label_count(values))
    throw ModelError("{} different keys and {} values", rows.size(), label_count(values));
  if (!keys.are_strings && !c.input(0).is_constant()) c.wait_for_run("looks up labels in a table");
  const Labels given =
      keys.are_strings ? Labels{true, c.strings(0).values, {}} : Labels{false, {}, c.constant(0)};
  c.builder().reserve_table({8, label_count(given)});  // each becomes text
  std::vector<std::int64_t> found;
  for (std::int64_t i = 0; i < label_count(given); ++i) {
    const auto row = rows.find(key_text(given, i));
    found.push_back(row == rows.end() ? -1 : row->second);
  }
  output_labels(c, values, keys.are_strings ? c.strings(0).dims : given.numbers.dims(), found);
}

/// An ensemble of trees over one index space: first the inner nodes, then the leaves, which lead to
/// themselves.
struct Ensemble {
  std::vector<std::int64_t> next_true, next_false, feature, mode, roots;
  std::int64_t inner = 0;
  int depth = 0;  ///< of the deepest leaf
};

enum NodeMode { less_or_equal, less, greater_or_equal, greater, equal, not_equal, member };

Ensemble read_ensemble(ImportContext& c, std::int64_t leaves) {
  Ensemble trees;
  trees.feature = c.integers("nodes_featureids");
  trees.inner = static_cast<std::int64_t>(trees.feature.size());
  trees.mode = c.tensor("nodes_modes").to_int64s();
  trees.roots = c.integers("tree_roots");
  const auto read_targets = [&](const std::string& ids, const std::string& leaf_marks) {
    std::vector<std::int64_t> targets = c.integers(ids);
    const std::vector<std::int64_t> marks = c.integers(leaf_marks);
    if (targets.size() != trees.feature.size() || marks.size() != targets.size())
      throw ModelError("the lists of nodes have different lengths");
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const std::int64_t most = marks[i] != 0 ? leaves : trees.inner;
      if (targets[i] < 0 || targets[i] >= most)
        throw ModelError("node {} leads to {}, which does not exist", i, targets[i]);
      if (marks[i] != 0) targets[i] += trees.inner;
    }
    return targets;
  };
  trees.next_true = read_targets("nodes_truenodeids", "nodes_trueleafs");
  trees.next_false = read_targets("nodes_falsenodeids", "nodes_falseleafs");
  if (trees.mode.size() != trees.feature.size())
    throw ModelError("the lists of nodes have different lengths");
  // Level by level; a graph with a cycle never ends, so more levels than nodes are an error.
  std::vector<std::int64_t> level = trees.roots;
  for (const std::int64_t root : level)
    if (root < 0 || root >= trees.inner) throw ModelError("root {} does not exist", root);
  while (!level.empty()) {
    ++trees.depth;
    if (trees.depth > 1000 || trees.depth > trees.inner + 1)
      throw ModelError("the trees are deeper than 1000, or have a cycle");
    std::vector<std::int64_t> below;
    for (const std::int64_t node : level) {
      for (const std::int64_t next : {trees.next_true[static_cast<std::size_t>(node)],
                                      trees.next_false[static_cast<std::size_t>(node)]})
        if (next < trees.inner) below.push_back(next);
    }
    std::sort(below.begin(), below.end());
    below.erase(std::unique(below.begin(), below.end()), below.end());
    level = std::move(below);
  }
  return trees;
}

/// The sets of the nodes with mode member, one row each, filled up with NaN, which equals nothing.
Tensor member_table(ImportContext& c, const Ensemble& trees, DType dtype) {
  std::vector<std::vector<double>> sets(static_cast<std::size_t>(trees.inner));
  std::size_t node = 0;
  const auto skip = [&] {
    while (node < sets.size() && trees.mode[node] != member) ++node;
  };
  skip();
  const Tensor values =
      c.has_attribute("membership_values") ? c.tensor("membership_values") : Tensor(dtype, {0});
  std::size_t width = 1;
  for (std::int64_t i = 0; i < values.size() && node < sets.size(); ++i) {
    const double value = values.as_double(i);
    if (std::isnan(value)) {
      ++node;
      skip();
      continue;
    }
    sets[node].push_back(value);
    width = std::max(width, sets[node].size());
  }
  const Dims dims{trees.inner, static_cast<std::int64_t>(width)};
  c.builder().reserve_table(dims);
  Tensor table(dtype, dims);
  for (std::int64_t i = 0; i < table.size(); ++i)
    table.set_double(i, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t row = 0; row < sets.size(); ++row)
    for (std::size_t i = 0; i < sets[row].size(); ++i)
      table.set_double(static_cast<std::int64_t>(row * width + i), sets[row][i]);
  return table;
}

bool has_mode(const Ensemble& trees, std::int64_t mode) {
  return std::find(trees.mode.begin(), trees.mode.end(), mode) != trees.mode.end();
}

/// What every level of the walk reads, one element per inner node. Absent: not needed.
struct NodeTables {
  Sym feature, split, mode, members, tracks, next_true, next_false;
};

NodeTables node_tables(ImportContext& c, const Ensemble& trees, const Tensor& splits, DType dtype) {
  GraphBuilder& b = c.builder();
  NodeTables tables;
  tables.feature = b.integers(trees.feature);
  tables.split = b.constant(splits);
  tables.mode = b.integers(trees.mode);
  if (has_mode(trees, member)) tables.members = b.constant(member_table(c, trees, dtype));
  const std::vector<std::int64_t> tracks = c.integers("nodes_missing_value_tracks_true");
  if (std::find(tracks.begin(), tracks.end(), 1) != tracks.end()) tables.tracks = b.integers(tracks);
  tables.next_true = b.integers(trees.next_true);
  tables.next_false = b.integers(trees.next_false);
  return tables;
}

/// Whether the condition of each node in `at` holds for the feature that it looks at.
Sym conditions(const Ensemble& trees, const NodeTables& tables, Sym x, Sym at) {
  GraphBuilder& b = x.builder();
  const Sym value =
      b.add(Op::gather_elements, {x, gather(tables.feature, at, 0)}, {{"axis", std::int64_t{1}}});
  const Sym split = gather(tables.split, at, 0);
  const Sym mode = gather(tables.mode, at, 0);
  constexpr Op comparisons[] = {Op::less_equal, Op::less, Op::greater_equal, Op::greater, Op::equal};
  const auto is_mode = [&](NodeMode wanted) { return apply(Op::equal, mode, static_cast<double>(wanted)); };
  Sym holds = apply(Op::logical_not, apply(Op::equal, value, split));
  for (int kind = less_or_equal; kind <= equal; ++kind) {
    if (!has_mode(trees, kind)) continue;
    holds = where(is_mode(static_cast<NodeMode>(kind)), apply(comparisons[kind], value, split), holds);
  }
  if (tables.members) {
    const Sym set = gather(tables.members, at, 0);
    const Sym is_item = cast(apply(Op::equal, unsqueeze(value, {-1}), set), DType::i32);
    const Sym is_member =
        apply(Op::greater, reduce(Op::reduce_max, is_item, {is_item.rank() - 1}, false), 0.0);
    holds = where(is_mode(member), is_member, holds);
  }
  if (!tables.tracks) return holds;
  const Sym goes_true = apply(Op::equal, gather(tables.tracks, at, 0), 1.0);
  return apply(Op::logical_or, holds, apply(Op::logical_and, apply(Op::is_nan, value), goes_true));
}

/// The leaves' weights, folded into their targets: [rows, targets].
Sym fold_leaves(ImportContext& c, Sym leaf, std::int64_t targets) {
  GraphBuilder& b = c.builder();
  const Tensor weights = c.tensor("leaf_weights");
  const Sym weight = unsqueeze(gather(b.constant(weights), leaf, 0), {2});
  const Sym target = unsqueeze(gather(b.integers(c.integers("leaf_targetids")), leaf, 0), {2});
  const Sym is_own = apply(Op::equal, target, reshape(b.iota(DType::i64, {targets}, 0), {1, 1, targets}));
  const std::int64_t aggregate = c.integer("aggregate_function", 1);
  const auto count = static_cast<double>(leaf.dim(1));
  switch (aggregate) {
    case 0:
      return reduce(Op::reduce_sum, where(is_own, weight, 0.0), {1}, false) / count;
    case 1:
      return reduce(Op::reduce_sum, where(is_own, weight, 0.0), {1}, false);
    case 2:
      return reduce(Op::reduce_min, where(is_own, weight, std::numeric_limits<double>::infinity()), {1},
                    false);
    case 3:
      return reduce(Op::reduce_max, where(is_own, weight, -std::numeric_limits<double>::infinity()), {1},
                    false);
    default:
      throw ModelError("aggregate_function is {}, expected 0 to 3", aggregate);
  }
}

/// All rows walk down all trees together, one level per step.
void tree_ensemble(ImportContext& c) {
  const Sym x = c.input(0);
  if (x.rank() != 2) throw ModelError("the input has rank {}, expected 2", x.rank());
  const auto leaves = static_cast<std::int64_t>(c.integers("leaf_targetids").size());
  const Ensemble trees = read_ensemble(c, leaves);
  const Tensor splits = c.tensor("nodes_splits");
  if (splits.size() != trees.inner || c.tensor("leaf_weights").size() != leaves)
    throw ModelError("the lists of nodes or leaves have different lengths");
  GraphBuilder& b = c.builder();
  const NodeTables tables = node_tables(c, trees, splits, x.dtype());
  const auto tree_count = static_cast<std::int64_t>(trees.roots.size());
  Sym at = broadcast_to(reshape(b.integers(trees.roots), {1, tree_count}), {x.dim(0), tree_count});
  for (int step = 0; step < trees.depth; ++step) {
    const Sym is_leaf = apply(Op::greater_equal, at, static_cast<double>(trees.inner));
    const Sym node = apply(Op::minimum, at, static_cast<double>(trees.inner - 1));
    const Sym next = where(conditions(trees, tables, x, node), gather(tables.next_true, node, 0),
                           gather(tables.next_false, node, 0));
    at = where(is_leaf, at, next);
  }
  const Sym result = fold_leaves(c, at - static_cast<double>(trees.inner), c.required_integer("n_targets"));
  switch (c.integer("post_transform", 0)) {
    case 0:
      return c.output(result);
    case 1:
      return c.output(softmax(result, 1));
    case 2:
      return c.output(apply(Op::sigmoid, result));
    default:
      throw UnsupportedError("post_transform {} is not supported", c.integer("post_transform", 0));
  }
}

const OnnxOp rows[] = {
    {"Binarizer", 1, binarizer, domain},
    {"LabelEncoder", 2, label_encoder, domain},
    {"TreeEnsemble", 5, tree_ensemble, domain},
};

}  // namespace

std::span<const OnnxOp> onnx_ml_ops() {
  return rows;
}

}  // namespace sylvite
