#pragma once
// Conversions of integers.

#include "sylvite/tensor.h"

namespace sylvite::quick {

/// Elements of a common type as those of another: f32, booleans, integers of 8 to 64 bits but for u32 and u64; no tensor for
/// others. Rounds and saturates as a cast does.
[[nodiscard]] Tensor converted(const Tensor&, DType, int threads);

}  // namespace sylvite::quick
