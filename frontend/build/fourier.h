#pragma once
// Fourier transforms along one axis, as products with matrices of cosines and sines: long ones in two parts.

#include <cstdint>

#include "frontend/graph/graph_builder.h"

namespace sylvite {

/// An inverse is divided by the length. One-sided: to half a spectrum of a real signal, or back from it.
struct Fourier {
  std::int64_t length = 0;
  bool is_inverse = false, is_onesided = false;
  bool is_one_product = false;  ///< up to a length of 2048: where products are fast and moves take longer
};

/// x is [..., 1 or 2] with real and imaginary parts last, transformed along another axis.
[[nodiscard]] Sym fourier_transform(Sym x, int axis, const Fourier& fourier);

}  // namespace sylvite
