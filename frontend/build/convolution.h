#pragma once
// Transposed convolutions.

#include "frontend/build/window.h"

namespace sylvite {

/// Per spatial axis: `begin` and `end` are what is cut off the full result, `output_padding` what is added to its end.
struct TransposedWindow {
  Dims strides, dilations, output_padding, begin, end;
};

/// [C, M/groups, k...] -> [M, C/groups, k...], flipped in space: the filters of the equivalent convolution.
[[nodiscard]] Sym transposed_weights(Sym w, std::int64_t groups);

/// A convolution over x with stride-1 zeros between neighbours, borders widened by the window. `w` is
/// [C, M/groups, k...]; `bias` may be absent. Throws ModelError for extents that do not fit.
[[nodiscard]] Sym transposed_conv(Sym x, Sym w, Sym bias, const TransposedWindow& window,
                                  std::int64_t groups);

}  // namespace sylvite
