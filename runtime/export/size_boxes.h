#pragma once
// Ranges of sizes in boxes, and at which of them a model is looked at to know it in a whole box.

#include <cstdint>
#include <functional>
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

/// The first sizes of the box for which it is so, of these symbols alone, the least first and the first symbol's fastest; nullopt
/// where it is so for none.
[[nodiscard]] std::optional<SymbolValues> find_sizes(
    const ModelSizes& model, const SizeBox& box, const std::vector<std::string>& symbols,
    const std::function<bool(const SymbolValues&)>& is_wanted);

/// All sizes of the box where they are few, else some.
[[nodiscard]] std::vector<SymbolValues> some_sizes(const ModelSizes& model, const SizeBox& box);

/// A grid of at most three sizes a symbol, and a few sizes more, which must confirm what the grid says. Where a symbol has
/// three sizes or fewer in the box, or the box has few, it has all of them.
class SizeGrid {
 public:
  SizeGrid(const ModelSizes& model, const SizeBox& box);

  /// The least sizes first; greatest() is where the greatest are; `hint`, sizes to be fast at, where they are in the box.
  [[nodiscard]] const std::vector<Sizes>& points() const { return points_; }
  [[nodiscard]] std::size_t greatest() const { return grid_ - 1; }
  [[nodiscard]] std::size_t hint() const { return hint_; }
  /// Are they all sizes of the box?
  [[nodiscard]] bool is_whole() const { return is_whole_; }

  /// Looks at the model there, too.
  void add(const Sizes& sizes);

 private:
  std::vector<Sizes> points_;  ///< of the grid, the last symbol fastest, then others
  std::size_t grid_ = 1;       ///< how many are of the grid
  std::size_t hint_ = 0;
  bool is_whole_ = true;
};

}  // namespace sylvite
