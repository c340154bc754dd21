#pragma once
// Gradients of depthwise convolutions by their filters; see schedules/cuda/depthwise_gradient.cuh.

#include <string>
#include <vector>

#include "schedules/cuda/conv.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[part, tap, channel]: f32 sums over the pixels of a part.
struct CudaDepthwiseGradientProblem {
  CudaMatmulProblem::Windows windows;
  DType element = DType::bf16;  ///< of the gradient and the images
  std::int64_t parts = 1, part = 0;
  int gradient = 0, x = 0, out_argument = 0;
  bool is_open = false;          ///< runs give the images' number, and so `part`
  bool has_open_images = false;  ///< and their lines and columns
};
[[nodiscard]] Reading<CudaDepthwiseGradientProblem> read_cuda_depthwise_gradient(const Kernel& kernel);

/// The numbers that may vary.
struct CudaDepthwiseGradientChoice {
  int vector = 4;  ///< channels of a thread
  int lanes = 8;   ///< threads side by side
  int deep = 32;   ///< threads on top of each other
  bool operator==(const CudaDepthwiseGradientChoice&) const = default;
};
/// Choices worth racing, the best guess first. Never empty.
[[nodiscard]] std::vector<CudaDepthwiseGradientChoice> cuda_depthwise_gradient_choices(
    const CudaDepthwiseGradientProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_depthwise_gradient(const CudaDepthwiseGradientProblem& problem,
                                                        const CudaDepthwiseGradientChoice& choice);

}  // namespace sylvite
