#pragma once
// Decision trees as tables: all rows walk down all trees together, one level per step.

#include <vector>

#include "frontend/onnx/import_context.h"

namespace sylvite {

enum NodeMode { less_or_equal, less, greater_or_equal, greater, equal, not_equal, member };

/// Trees over one index space: first the inner nodes, then the leaves. All lists are by inner node.
struct Forest {
  std::vector<std::int64_t> next_true, next_false;  ///< inner nodes, or leaves from inner() on
  std::vector<std::int64_t> feature, mode;
  std::vector<std::int64_t> tracks;       ///< 1: NaN takes the true branch; empty for none
  Tensor splits;                          ///< what features are compared with
  std::vector<std::vector<double>> sets;  ///< of nodes with mode member; empty where there are none
  std::vector<std::int64_t> roots;        ///< one per tree, a leaf for a tree without inner nodes
  std::int64_t leaves = 0;

  [[nodiscard]] std::int64_t inner() const { return static_cast<std::int64_t>(feature.size()); }
};

/// Nodes that ask for what is not equal ask for what is, the other way round. Throws ModelError for lists that do not belong
/// together, for nodes and leaves that do not exist, and for a node that leads back to itself; UnsupportedError for trees deeper
/// than 1000.
void settle_forest(Forest& forest);
/// Throws ModelError when a node looks at a feature beyond so many.
void check_features(const Forest& forest, std::int64_t features);

/// The leaf, from 0, where each row of x [rows, features] ends in each tree: i32 [rows, trees]. Throws ModelError
/// for lists that do not belong together, for nodes, leaves and features that do not exist, and for a node that
/// leads back to itself; UnsupportedError for trees deeper than 1000.
[[nodiscard]] Sym reached_leaves(Forest forest, Sym x);

/// What leaf number `leaf` adds to `target`.
struct LeafWeight {
  std::int64_t leaf, target;
  double weight;
};

enum class Aggregate { average, sum, minimum, maximum };

/// What leaves add to targets, [leaves, targets]; what adds nothing is 0, or an infinity where the least or largest counts. Throws
/// ModelError for leaves and targets that do not exist. REQUIRES that the table was reserved.
[[nodiscard]] std::vector<double> leaf_table(const std::vector<LeafWeight>& weights, std::int64_t leaves,
                                             std::int64_t targets, Aggregate aggregate);
/// What a target has that no leaf adds to.
[[nodiscard]] double nothing_of(Aggregate aggregate);

/// The weights of the reached leaves, put together over the trees by target: [rows, targets]. A target that no
/// reached leaf has is 0. Throws ModelError for leaves and targets that do not exist.
[[nodiscard]] Sym fold_leaves(Sym reached, const std::vector<LeafWeight>& weights, std::int64_t leaves,
                              std::int64_t targets, Aggregate aggregate, DType dtype);

}  // namespace sylvite
