#pragma once
// Ranges of sizes in boxes, and numbers as functions of sizes, found by what they are at a few sizes of a box.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/onnx/model_sizes.h"
#include "sylvite/extent.h"

namespace sylvite {

/// Of each symbol of a ModelSizes the sizes from `low` to `high`, both of which it may have.
struct SizeBox {
  Sizes low;
  Sizes high;
};

/// The box of all sizes, divided where size_class says that most kernels are others.
[[nodiscard]] std::vector<SizeBox> size_boxes(const ModelSizes& model);
/// How many sizes the box has along that axis.
[[nodiscard]] std::int64_t count_along(const ModelSizes& model, const SizeBox& box, std::size_t axis);
/// The sizes up to `last` along an axis, and those beyond. REQUIRES both.
[[nodiscard]] std::pair<SizeBox, SizeBox> divided(const ModelSizes& model, const SizeBox& box,
                                                  std::size_t axis, std::int64_t last);
/// The size `part` of the way from low to high along an axis, 0 <= part <= 1.
[[nodiscard]] std::int64_t size_between(const ModelSizes& model, const SizeBox& box, std::size_t axis,
                                        double part);

/// Where a model is looked at to know it in a whole box: on a grid of at most three sizes a symbol, and at a few sizes more,
/// which must confirm what the grid says. Where a symbol has three sizes or fewer in the box, it has all of them.
class SizeGrid {
 public:
  SizeGrid(const ModelSizes& model, const SizeBox& box);

  /// The least sizes first; greatest() is where the greatest are; `hint`, sizes to be fast at, where they are in the box.
  [[nodiscard]] const std::vector<Sizes>& points() const { return points_; }
  [[nodiscard]] std::size_t greatest() const { return grid_ - 1; }
  [[nodiscard]] std::size_t hint() const { return hint_; }

  /// Looks at the model there, too.
  void add(const Sizes& sizes);

  /// The polynomial with integer coefficients, of degree two at most in each symbol, that has these values at the points;
  /// nullopt where there is none.
  [[nodiscard]] std::optional<Extent> fit(const std::vector<std::int64_t>& values) const;

 private:
  [[nodiscard]] std::optional<Extent> interpolate(const std::vector<std::int64_t>& values, std::size_t first,
                                                  std::size_t axis) const;

  std::vector<std::string> names_;
  std::vector<std::vector<std::int64_t>> nodes_;  ///< of the grid, per symbol
  std::vector<std::size_t> strides_;              ///< of the grid, in points
  std::vector<Sizes> points_;                     ///< of the grid, the last symbol fastest, then others
  std::size_t grid_ = 1;                          ///< how many are of the grid
  std::size_t hint_ = 0;
};

}  // namespace sylvite
