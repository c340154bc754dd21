#pragma once
// Arguments of the stages of a matrix product or an attention: first a template's own, then the batch.

#include <vector>

#include "lowering/algorithms/algorithm_builder.h"

namespace sylvite {

/// The batch dims of a value whose last two dims are rows and columns.
class BatchVars {
 public:
  explicit BatchVars(const TensorType& type) : batch_(AlgorithmBuilder::vars_of(type)) {
    batch_.erase(batch_.begin(), batch_.begin() + 2);
  }

  [[nodiscard]] std::vector<Halide::Expr> with(std::vector<Halide::Expr> first) const {
    first.insert(first.end(), batch_.begin(), batch_.end());
    return first;
  }
  [[nodiscard]] std::vector<Halide::Var> vars(std::vector<Halide::Var> first) const {
    first.insert(first.end(), batch_.begin(), batch_.end());
    return first;
  }
  /// Logical coordinates [batch..., row, column].
  [[nodiscard]] Coordinates at(const Halide::Expr& row, const Halide::Expr& column) const {
    Coordinates result;
    for (std::size_t i = batch_.size(); i-- > 0;) result.emplace_back(Halide::Expr(batch_[i]));
    result.emplace_back(row);
    result.emplace_back(column);
    return result;
  }

 private:
  std::vector<Halide::Var> batch_;  ///< innermost first
};

}  // namespace sylvite
