#pragma once
// Kernels that a vendor's library computes instead of one of ours.

#include <variant>

#include "schedules/cuda/library_conv.h"
#include "schedules/cuda/matmul.h"

namespace sylvite {

/// One of the algorithms that cuBLASLt's heuristics propose, the best first. REQUIRES
/// problem.simple_epilogue.
struct LibraryMatmul {
  CudaMatmulProblem problem;
  std::size_t algorithm = 0;
};

/// One of the engines that cuDNN's heuristics propose, the best first.
struct LibraryConv {
  LibraryConvProblem problem;
  std::size_t engine = 0;
};

struct LibraryKernel {
  std::variant<LibraryMatmul, LibraryConv> call;
};

}  // namespace sylvite
