#pragma once
// A matmul that cuBLASLt computes instead of a kernel of ours.

#include "schedules/cuda_matmul.h"

namespace sylvite {

/// One of the algorithms that cuBLASLt's heuristics propose, the best first. REQUIRES
/// problem.simple_epilogue.
struct LibraryMatmul {
  CudaMatmulProblem problem;
  std::size_t algorithm = 0;
};

}  // namespace sylvite
