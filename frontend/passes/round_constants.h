#pragma once
// Constants of f32 in 16 bits.

#include "sylvite/tensor.h"

namespace sylvite {

/// Each number rounded to the nearest of `narrow`, bf16 or f16, ties to even. Finite numbers stay finite.
[[nodiscard]] Tensor rounded(const Tensor& tensor, DType narrow);

/// A convolution's filters [O, C, spatial...] in bf16, with the sums over C of each filter's taps nearly
/// kept: all numbers go to the nearest, then some of those nearest to the middle of their two neighbours
/// (and, where these are too few, of those up to 0.35 of the way from one) go to the other one, until the sum
/// of the errors is as near zero as that can bring it. What activations such as ReLU let through has a mean,
/// and the mean times the sum of the errors is what rounding adds to all pixels of an output alike. The idea
/// is that of bias correction (Nagel et al., Data-Free Quantization Through Weight Equalization and Bias
/// Correction, 2019), but needs to know no mean. Finite numbers stay finite.
[[nodiscard]] Tensor rounded_filters(const Tensor& filters);

}  // namespace sylvite
