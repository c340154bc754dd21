#pragma once
// Whether a candidate computes what the reference schedule computes.

#include <cmath>

#include "lowering/plan/kernel.h"
#include "sylvite/tensor.h"

namespace sylvite {

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-4;  ///< times the largest finite magnitude of the expected tensor

  /// The largest |actual - expected| that passes, where `scale` is that magnitude.
  [[nodiscard]] double allowed(double expected, double scale) const {
    return absolute * scale + relative * std::abs(expected);
  }
};

/// What candidates of a kernel may differ by. Attention in bf16 or f16 may round its probabilities to that
/// type, since tensor cores multiply them so: the sum then errs by up to a rounding of the largest value.
/// `tf32`: its f32 operands may have been rounded to TF32, which has 10 bits after the point.
[[nodiscard]] Tolerance tolerance_of(const Kernel& kernel, bool tf32 = false);

/// The largest |a - e| / (absolute * scale + relative * |e|) over all elements, where scale = max |e|: at
/// most 1 passes. Infinity when NaNs or infinities stand at different places, and for any difference in a
/// tensor of integers or booleans. For bf16 and f16 neighbouring values agree whatever the tolerance. The
/// tensors are as stored by `type`; padding is not compared.
[[nodiscard]] double output_error(const TensorType& type, const Tensor& actual, const Tensor& expected,
                                  const Tolerance& tolerance = {});

}  // namespace sylvite
