#pragma once
// The first elements of rows, in order; see schedules/cuda/top_k.cuh.

#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// Of each row of `count` elements, `inner` apart, the `k` first of the order, and their indices as i64.
struct CudaTopKProblem {
  std::int64_t rows = 0, count = 0, inner = 1, k = 0;
  bool largest = true;
  DType element = DType::f32;
  int x = 0, values = 0, indices = 0;  ///< arguments
};
[[nodiscard]] Reading<CudaTopKProblem> read_cuda_top_k(const Kernel& kernel);

/// The numbers that may vary.
struct CudaTopKChoice {
  int threads = 32;  ///< of a row, a multiple of 32
  int rows = 1;      ///< of a block
  bool operator==(const CudaTopKChoice&) const = default;
};
/// Choices worth racing, the best guess first. Never empty.
[[nodiscard]] std::vector<CudaTopKChoice> cuda_top_k_choices(const CudaTopKProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_top_k(const CudaTopKProblem& problem, const CudaTopKChoice& choice);

}  // namespace sylvite
