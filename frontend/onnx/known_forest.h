#pragma once
// Decision trees of rows that are known, as in a host step: each row walks down each tree by itself.

#include <vector>

#include "frontend/onnx/forest.h"

namespace sylvite {

/// A forest with the weights of its leaves, checked once. Thread safety: const use is safe.
class KnownForest {
 public:
  /// Throws as reached_leaves and fold_leaves do. REQUIRES that a table [leaves, targets] was reserved.
  KnownForest(const Forest& forest, const std::vector<LeafWeight>& weights, std::int64_t targets,
              Aggregate aggregate, DType dtype);

  /// What fold_leaves of reached_leaves has: of x [rows, features] in f32 or f64, [rows, targets] of `dtype`. Throws ModelError
  /// where x has too few features.
  [[nodiscard]] Tensor scores(const Tensor& x) const;

 private:
  struct Node {
    double split;
    std::int64_t next_true, next_false, feature, mode;
    bool tracks;  ///< NaN takes the true branch
  };

  template <typename T>
  [[nodiscard]] bool holds(std::int64_t at, T value) const;
  template <typename T>
  [[nodiscard]] std::int64_t leaf(std::int64_t root, const T* row) const;
  template <typename T>
  void add_up(const T* x, std::int64_t rows, std::int64_t features, Tensor& result) const;

  std::vector<Node> nodes_;
  std::vector<std::vector<double>> sets_;
  std::vector<std::int64_t> roots_;
  std::vector<double> table_;  ///< see leaf_table; rounded to `dtype`
  std::int64_t targets_, features_ = 0;
  Aggregate aggregate_;
  DType dtype_;
};

}  // namespace sylvite
