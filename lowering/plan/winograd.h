#pragma once
// Winograd's convolution F(m x m, 3 x 3): m x m outputs of a 3 x 3 window with (m+2)^2 products instead of 9
// m^2.

#include <cstdint>
#include <vector>

#include "sylvite/tensor.h"

namespace sylvite {

/// A matrix as rows.
using Matrix = std::vector<std::vector<double>>;

/// Along one dim, with n = tile + 2: outputs = output * ((filter * taps) . (input * inputs)), where .
/// multiplies element by element. Two dims: the same along each. The points of interpolation are 0, pairs +a
/// and -a, and infinity, so that rows 1 and 2, 3 and 4, ... of `input` differ only in the sign of their odd
/// columns, and columns 1 and 2, 3 and 4, ... of `output` only in that of their odd rows: half of the sums
/// are shared.
struct WinogradTransform {
  int tile = 0;   ///< m: outputs along a side
  Matrix input;   ///< n x n
  Matrix filter;  ///< n x 3
  Matrix output;  ///< m x n

  [[nodiscard]] int size() const { return tile + 2; }  ///< n: inputs, and products, along a side
};

/// REQUIRES tile 2 or 4, else throws UnsupportedError.
[[nodiscard]] const WinogradTransform& winograd_transform(int tile);

/// Extents of a transformed filter [O, I, 3, 3]: [n, n, O, I]. Throws UnsupportedError for other filters.
[[nodiscard]] Dims transformed_filter_dims(const Dims& filter, int tile);
/// The f32 filter [O, I, 3, 3] transformed, computed in double and rounded once. The first dim of the result
/// belongs to the filter's rows.
[[nodiscard]] Tensor transform_filter(const Tensor& filter, int tile);

}  // namespace sylvite
