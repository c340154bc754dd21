#pragma once
// Gradients of convolutions of few channels by their filters; see schedules/cuda/line_gradient.cuh.

#include <string>
#include <vector>

#include "schedules/cuda/matmul.h"

namespace sylvite {

/// A gradient by a filter whose taps of a line are joined, and nothing more: `windows` are given, a tap each of `n` values.
[[nodiscard]] Reading<CudaMatmulProblem> read_cuda_line_gradient(const Kernel& kernel);

/// The numbers that may vary.
struct CudaLineGradientChoice {
  int rows = 64;   ///< outputs of a block, a multiple of 16
  int sides = 8;   ///< warps that share the columns, of 8 in all: 1, 2, 4 or 8
  int chunk = 64;  ///< pixels at a time
  int resident = 2;

  [[nodiscard]] std::string to_string() const;
  bool operator==(const CudaLineGradientChoice&) const = default;
};
/// Choices worth racing, the best guess first.
[[nodiscard]] std::vector<CudaLineGradientChoice> cuda_line_gradient_choices(
    const CudaMatmulProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_line_gradient(const CudaMatmulProblem& problem,
                                                   const CudaLineGradientChoice& choice);

}  // namespace sylvite
