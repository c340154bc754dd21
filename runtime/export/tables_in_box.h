#pragma once
// A table of a model at each size of a box, one after another.

#include "lowering/plan/fitted_table.h"
#include "runtime/export/size_boxes.h"

namespace sylvite {

struct TablesInBox {
  Tensor bytes;  ///< u8
  Extent place;  ///< where the table of given sizes begins
};

/// Throws UnsupportedError where they would take too much, or the rule has none at some size.
[[nodiscard]] TablesInBox tables_in_box(const ModelSizes& model, const SizeBox& box,
                                        const FittedTable& table);

}  // namespace sylvite
