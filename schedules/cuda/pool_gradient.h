#pragma once
// Gradients of max poolings; see schedules/cuda/pool_gradient.cuh.

#include <vector>

#include "schedules/cuda/conv.h"
#include "schedules/cuda/template.h"

namespace sylvite {

struct CudaPoolGradientProblem {
  CudaMatmulProblem::Windows windows;
  DType element = DType::bf16;
  int gradient = 0, x = 0, out_argument = 0;
  bool is_open = false;          ///< runs give the images' number
  bool has_open_images = false;  ///< and their lines and columns
};
[[nodiscard]] Reading<CudaPoolGradientProblem> read_cuda_pool_gradient(const Kernel& kernel);

/// The numbers that may vary.
struct CudaPoolGradientChoice {
  int vector = 8;  ///< channels of a thread
  int threads = 256;
  int lines = 2, columns = 2;  ///< pixels of a thread
  bool operator==(const CudaPoolGradientChoice&) const = default;
};
/// Choices worth racing, the best guess first. Never empty.
[[nodiscard]] std::vector<CudaPoolGradientChoice> cuda_pool_gradient_choices(
    const CudaPoolGradientProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_pool_gradient(const CudaPoolGradientProblem& problem,
                                                   const CudaPoolGradientChoice& choice);

}  // namespace sylvite
