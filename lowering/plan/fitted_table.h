#pragma once
// A constant that follows from a model's sizes by a rule (size_table.h), whose numbers are expressions of the sizes. Where it has no
// rule of its own, the rule may be that it is the block at the beginning of a larger one: so are masks, grids of positions and
// biases by distance.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lowering/plan/extent_fit.h"
#include "sylvite/tensor.h"

namespace sylvite {

struct FittedTable {
  std::string rule;
  std::vector<Extent> numbers;
  std::function<Tensor(const Dims&)> make;

  /// What an import at these sizes would have, known as a table again. Throws Error where there is none.
  [[nodiscard]] Tensor at(const SymbolValues& sizes) const;
};

/// Is it the first elements of `whole` along each axis?
[[nodiscard]] bool is_leading_block(const Tensor& whole, const Tensor& block);

/// `samples` are what the constant is at the points that `fit` knows, in their order. nullopt where they have no rule in common,
/// or a number of it is no expression.
[[nodiscard]] std::optional<FittedTable> fit_table(const std::vector<Tensor>& samples, ExtentFit& fit);

}  // namespace sylvite
