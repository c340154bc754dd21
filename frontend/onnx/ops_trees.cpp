// Ensembles of decision trees of ai.onnx.ml.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "frontend/onnx/class_scores.h"
#include "frontend/onnx/forest.h"
#include "frontend/onnx/known_forest.h"
#include "frontend/onnx/ops.h"

namespace sylvite {
namespace {

/// A list of reals that newer versions give as a tensor.
Tensor reals_of(ImportContext& c, const std::string& name) {
  if (c.has_attribute(name + "_as_tensor")) return c.tensor(name + "_as_tensor");
  const std::vector<double> values = c.reals(name);
  Tensor result(DType::f32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) result.set_double(static_cast<std::int64_t>(i), values[i]);
  return result;
}

/// Sets follow one another, each ended by a NaN; each belongs to the next node with mode member.
void read_sets(Forest& forest, const Tensor& values) {
  forest.sets.resize(forest.mode.size());
  std::size_t node = 0;
  const auto skip = [&] {
    while (node < forest.sets.size() && forest.mode[node] != member) ++node;
  };
  skip();
  for (std::int64_t i = 0; i < values.size() && node < forest.sets.size(); ++i) {
    const double value = values.as_double(i);
    if (!std::isnan(value)) {
      forest.sets[node].push_back(value);
      continue;
    }
    ++node;
    skip();
  }
}

/// The version that numbers inner nodes and leaves over all trees.
Forest read_numbered(ImportContext& c, std::int64_t leaves) {
  Forest forest;
  forest.leaves = leaves;
  forest.feature = c.integers("nodes_featureids");
  forest.mode = c.tensor("nodes_modes").to_int64s();
  forest.roots = c.integers("tree_roots");
  forest.splits = c.tensor("nodes_splits");
  forest.tracks = c.integers("nodes_missing_value_tracks_true");
  const std::int64_t inner = forest.inner();
  for (const std::int64_t root : forest.roots)
    if (root < 0 || root >= inner) throw ModelError("root {} does not exist", root);
  const auto read_targets = [&](const std::string& ids, const std::string& leaf_marks) {
    std::vector<std::int64_t> targets = c.integers(ids);
    const std::vector<std::int64_t> marks = c.integers(leaf_marks);
    if (marks.size() != targets.size()) throw ModelError("the lists of nodes have different lengths");
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] < 0 || targets[i] >= (marks[i] != 0 ? leaves : inner))
        throw ModelError("node {} leads to {}, which does not exist", i, targets[i]);
      if (marks[i] != 0) targets[i] += inner;
    }
    return targets;
  };
  forest.next_true = read_targets("nodes_truenodeids", "nodes_trueleafs");
  forest.next_false = read_targets("nodes_falsenodeids", "nodes_falseleafs");
  if (c.has_attribute("membership_values")) read_sets(forest, c.tensor("membership_values"));
  (void)c.has_attribute("nodes_hitrates");
  return forest;
}

/// What a node's attributes say, which steps on the host read once.
struct Ensemble {
  Forest forest;
  std::vector<LeafWeight> weights;
  std::int64_t targets = 1;
  Aggregate aggregate = Aggregate::sum;
  Tensor base = Tensor(DType::f32, {0});  ///< what targets begin with; empty: nothing
  bool is_one_sided = false;              ///< of a classifier: leaves weigh one of two classes only
  bool is_second = false;                 ///< namely the second
  std::optional<KnownForest> known;       ///< where rows are known
};

bool has_known_rows(Sym x) {
  return x.is_constant() && x.rank() == 2 && (x.dtype() == DType::f32 || x.dtype() == DType::f64);
}

/// `dtype`: of the scores.
std::shared_ptr<const Ensemble> kept_ensemble(ImportContext& c, Sym x, DType dtype,
                                              const std::function<Ensemble()>& read) {
  return c.kept<Ensemble>([&] {
    Ensemble e = read();
    if (!has_known_rows(x)) return e;
    c.builder().reserve_table({e.forest.leaves, std::max<std::int64_t>(e.targets, 1)});
    e.known.emplace(e.forest, e.weights, e.targets, e.aggregate, dtype);
    return e;
  });
}

/// Of rows x [rows, features]: [rows, targets], without what they begin with.
Sym scores_of(ImportContext& c, const Ensemble& e, Sym x, DType dtype) {
  if (!e.known || !has_known_rows(x))
    return fold_leaves(reached_leaves(e.forest, x), e.weights, e.forest.leaves, e.targets, e.aggregate,
                       dtype);
  constexpr std::int64_t of_a_walk = 64;
  const auto trees = static_cast<std::int64_t>(e.forest.roots.size());
  c.builder().charge(checked_product({x.dim(0), e.targets, 8}, "scores"),
                     checked_product({x.dim(0), trees, of_a_walk + e.targets}, "walks"));
  return c.builder().constant(e.known->scores(x.constant()));
}

Aggregate aggregate_named(const std::string& name) {
  if (name == "AVERAGE") return Aggregate::average;
  if (name == "SUM") return Aggregate::sum;
  if (name == "MIN") return Aggregate::minimum;
  if (name == "MAX") return Aggregate::maximum;
  throw ModelError("aggregate_function is '{}', expected SUM, AVERAGE, MIN or MAX", name);
}

template <typename Names>
const char* numbered(const Names& names, std::int64_t index, const char* what) {
  if (index < 0 || index >= static_cast<std::int64_t>(std::size(names)))
    throw ModelError("{} is {}, expected 0 to {}", what, index, std::size(names) - 1);
  return names[static_cast<std::size_t>(index)];
}

Ensemble read_ensemble(ImportContext& c) {
  constexpr const char* aggregates[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  Ensemble e;
  const std::vector<std::int64_t> targets = c.integers("leaf_targetids");
  const Tensor values = c.tensor("leaf_weights");
  const auto leaves = static_cast<std::int64_t>(targets.size());
  if (values.size() != leaves) throw ModelError("the lists of leaves have different lengths");
  e.weights.reserve(targets.size());
  for (std::int64_t i = 0; i < leaves; ++i)
    e.weights.push_back({i, targets[static_cast<std::size_t>(i)], values.as_double(i)});
  e.forest = read_numbered(c, leaves);
  e.targets = c.required_integer("n_targets");
  e.aggregate =
      aggregate_named(numbered(aggregates, c.integer("aggregate_function", 1), "aggregate_function"));
  return e;
}

void tree_ensemble(ImportContext& c) {
  constexpr const char* transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const Sym x = c.input(0);
  const auto e = kept_ensemble(c, x, x.dtype(), [&] { return read_ensemble(c); });
  const Sym sum = scores_of(c, *e, x, x.dtype());
  c.output(transformed(sum, numbered(transforms, c.integer("post_transform", 0), "post_transform")));
}

/// The versions that name a node by its tree and its number there.
struct NamedForest {
  Forest forest;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>
      places;  ///< in the forest, by tree and number
};

NodeMode mode_named(const std::string& name) {
  constexpr const char* names[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                   "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (name == names[i]) return static_cast<NodeMode>(i);
  throw ModelError("a node has the unknown mode '{}'", name);
}

/// Inner nodes get the first places, then leaves; the first node of a tree is its root.
NamedForest read_named(ImportContext& c) {
  NamedForest result;
  Forest& forest = result.forest;
  const std::vector<std::int64_t> tree = c.integers("nodes_treeids");
  const std::vector<std::int64_t> number = c.integers("nodes_nodeids");
  const std::vector<std::int64_t> feature = c.integers("nodes_featureids");
  const std::vector<std::int64_t> if_true = c.integers("nodes_truenodeids");
  const std::vector<std::int64_t> if_false = c.integers("nodes_falsenodeids");
  const std::vector<std::int64_t> tracks = c.integers("nodes_missing_value_tracks_true");
  const std::vector<std::string> modes = c.strings("nodes_modes");
  const Tensor values = reals_of(c, "nodes_values");
  (void)c.has_attribute("nodes_hitrates");
  (void)c.has_attribute("nodes_hitrates_as_tensor");
  const std::size_t count = tree.size();
  for (const std::size_t size : {number.size(), feature.size(), if_true.size(), if_false.size(), modes.size(),
                                 static_cast<std::size_t>(values.size())})
    if (size != count) throw ModelError("the lists of nodes have different lengths");
  if (!tracks.empty() && tracks.size() != count)
    throw ModelError("the lists of nodes have different lengths");
  const auto inner = std::count_if(modes.begin(), modes.end(), [](const auto& m) { return m != "LEAF"; });
  std::int64_t next_inner = 0;
  std::int64_t next_leaf = inner;
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t place = modes[i] == "LEAF" ? next_leaf++ : next_inner++;
    if (!result.places.emplace(std::pair(tree[i], number[i]), place).second)
      throw ModelError("tree {} has two nodes {}", tree[i], number[i]);
    if (seen.insert(tree[i]).second) forest.roots.push_back(place);
  }
  forest.leaves = next_leaf - inner;
  const auto place_of = [&](std::size_t i, std::int64_t id) {
    const auto found = result.places.find({tree[i], id});
    if (found == result.places.end())
      throw ModelError("node {} of tree {} leads to {}, which does not exist", number[i], tree[i], id);
    return found->second;
  };
  forest.splits = Tensor(values.dtype(), {inner});
  for (std::size_t i = 0; i < count; ++i) {
    if (modes[i] == "LEAF") continue;
    forest.splits.set_double(forest.inner(), values.as_double(static_cast<std::int64_t>(i)));
    forest.feature.push_back(feature[i]);
    forest.mode.push_back(mode_named(modes[i]));
    forest.next_true.push_back(place_of(i, if_true[i]));
    forest.next_false.push_back(place_of(i, if_false[i]));
    if (!tracks.empty()) forest.tracks.push_back(tracks[i]);
  }
  return result;
}

/// The lists PREFIX_treeids, PREFIX_nodeids, PREFIX_ids and PREFIX_weights.
std::vector<LeafWeight> read_leaf_weights(ImportContext& c, const NamedForest& trees,
                                          const std::string& prefix) {
  const std::vector<std::int64_t> tree = c.integers(prefix + "_treeids");
  const std::vector<std::int64_t> number = c.integers(prefix + "_nodeids");
  const std::vector<std::int64_t> target = c.integers(prefix + "_ids");
  const Tensor weight = reals_of(c, prefix + "_weights");
  if (number.size() != tree.size() || target.size() != tree.size() ||
      weight.size() != static_cast<std::int64_t>(tree.size()))
    throw ModelError("the lists of weights have different lengths");
  std::vector<LeafWeight> weights;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto found = trees.places.find({tree[i], number[i]});
    if (found == trees.places.end() || found->second < trees.forest.inner())
      throw ModelError("a weight is for node {} of tree {}, which is no leaf", number[i], tree[i]);
    weights.push_back(
        {found->second - trees.forest.inner(), target[i], weight.as_double(static_cast<std::int64_t>(i))});
  }
  return weights;
}

Ensemble read_regressor(ImportContext& c) {
  Ensemble e;
  NamedForest trees = read_named(c);
  e.weights = read_leaf_weights(c, trees, "target");
  e.forest = std::move(trees.forest);
  e.targets = c.required_integer("n_targets");
  e.aggregate = aggregate_named(c.string("aggregate_function", "SUM"));
  e.base = reals_of(c, "base_values");
  if (e.base.size() > 0 && e.base.size() != e.targets)
    throw ModelError("base_values has {} elements for {} targets", e.base.size(), e.targets);
  return e;
}

/// With what targets begin with.
Sym whole_scores(ImportContext& c, const Ensemble& e, Sym x) {
  const Sym sum = scores_of(c, e, x, DType::f32);
  return e.base.size() > 0 ? sum + cast(c.builder().constant(e.base), DType::f32) : sum;
}

void tree_regressor(ImportContext& c) {
  const Sym x = feature_rows(c.input(0));
  const auto e = kept_ensemble(c, x, DType::f32, [&] { return read_regressor(c); });
  c.output(transformed(whole_scores(c, *e, x), c.string("post_transform", "NONE")));
}

bool all_positive(const std::vector<LeafWeight>& weights) {
  return std::all_of(weights.begin(), weights.end(), [](const LeafWeight& w) { return w.weight >= 0; });
}

/// Trees that weigh one of two classes only: their sum is the second one's score. They are shares of 1 unless some
/// are negative.
void one_sided_classes(ImportContext& c, const ClassLabels& labels, Sym sum, const Ensemble& e) {
  const std::string transform = c.string("post_transform", "NONE");
  TwoClasses two = two_classes(sum, all_positive(e.weights), e.is_second ? "NONE" : transform);
  if (e.is_second) two.scores = transformed(concat({sum * 0.0, sum}, 1), transform);
  labels.output(c, reshape(cast(two.is_second, DType::i64), {sum.dim(0)}));
  c.output(1, two.scores);
}

Ensemble read_classifier(ImportContext& c, std::int64_t classes) {
  Ensemble e;
  NamedForest trees = read_named(c);
  e.weights = read_leaf_weights(c, trees, "class");
  e.forest = std::move(trees.forest);
  e.base = reals_of(c, "base_values");
  e.is_one_sided = classes == 2 && std::all_of(e.weights.begin(), e.weights.end(), [&](const auto& w) {
                     return w.target == e.weights[0].target;
                   });
  e.is_second = e.is_one_sided && !e.weights.empty() && e.weights[0].target == 1;
  e.targets = e.is_one_sided ? 1 : classes;
  if (e.base.size() != 0 && (e.base.size() != e.targets || e.is_second))
    throw UnsupportedError("base_values has {} elements for {} columns of scores", e.base.size(), e.targets);
  if (e.is_second)
    for (LeafWeight& weight : e.weights) weight.target = 0;
  return e;
}

void tree_classifier(ImportContext& c) {
  const Sym x = feature_rows(c.input(0));
  const ClassLabels labels(c, "classlabels_int64s");
  const auto e = kept_ensemble(c, x, DType::f32, [&] { return read_classifier(c, labels.count()); });
  const Sym sum = whole_scores(c, *e, x);
  if (e->is_one_sided) return one_sided_classes(c, labels, sum, *e);
  const Sym best =
      c.builder().add(Op::arg_max, {sum}, {{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{0}}});
  labels.output(c, best);
  c.output(1, transformed(sum, c.string("post_transform", "NONE")));
}

const OnnxOp trees_rows[] = {
    {"TreeEnsemble", 5, tree_ensemble, onnx_ml},
    {"TreeEnsembleClassifier", 1, tree_classifier, onnx_ml},
    {"TreeEnsembleRegressor", 1, tree_regressor, onnx_ml},
};

}  // namespace

std::span<const OnnxOp> onnx_tree_ops() {
  return trees_rows;
}

}  // namespace sylvite
