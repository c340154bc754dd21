#pragma once
// Convolutions whose groups have one channel each.

#include "frontend/quick/window.h"

namespace sylvite::quick {

/// Planes of both tensors; each of an input becomes outputs/inputs of the result.
struct PlaneCounts {
  std::int64_t images = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
};

/// `bias` may be nullptr. REQUIRES `output` to be zero.
void convolve_planes(const Window& window, const float* input, const float* weights, const float* bias,
                     float* output, const PlaneCounts& counts, int threads);

}  // namespace sylvite::quick
