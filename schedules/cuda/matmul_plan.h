#pragma once
// What of a problem a matmul template's choice has in shared memory, and how much. Internal to schedules/.

#include <vector>

#include "schedules/cuda/matmul_epilogue.h"

namespace sylvite {

/// The problem as the kernel sees it: x and y instead of a and b, m and n.
struct MatmulSides {
  const MatmulOperand *x, *y;
  std::int64_t x_extent, y_extent;
};
[[nodiscard]] MatmulSides sides_of(const CudaMatmulProblem& problem, bool swapped);

/// Shared memory, and what it allows.
struct SharedMemoryPlan {
  int chunk = 0;
  int buffers = 2;        ///< chunks of a consumer
  int buffers_at = 0;     ///< bytes before them, where parts of a split arrive
  int out_bytes = 0;      ///< all of a consumer's
  int vector_floats = 0;  ///< of a consumer
  int stages = 0;
  int shared_bytes = 0;
  bool store_boxes = false;
  bool store_rows = false;
  bool residual = false;  ///< an operand of the epilogue comes into the buffers of the result
  int beside_bytes = 0;   ///< of an element of one that has buffers of its own, or 0
  int beside_at = 0;      ///< bytes before those
  [[nodiscard]] int boxed() const { return (residual ? 1 : 0) + (beside_bytes != 0 ? 1 : 0); }
};

/// Bytes of an operand's element, and of the result's.
[[nodiscard]] int element_bytes(const CudaMatmulProblem& problem);
[[nodiscard]] std::int64_t out_bytes(const CudaMatmulProblem& problem);
/// Bytes of depth in a stage: the widest swizzle, unless the taps of a convolution fill no more than half.
[[nodiscard]] int stage_row(const CudaMatmulProblem& problem);
/// Stages of the whole depth.
[[nodiscard]] std::int64_t steps_of(const CudaMatmulProblem& problem);
[[nodiscard]] int rows_of_consumer(const CudaMatmulChoice& choice);
/// So many operands at most come in boxes, where results are swapped (what was measured).
[[nodiscard]] std::vector<EpilogueTerm> terms_of(const CudaMatmulProblem& problem,
                                                 const CudaMatmulChoice& choice, int boxed);
/// Wide chunks of results, unless narrow ones leave room for a stage that counts. As many operands come in boxes
/// as leave enough stages.
[[nodiscard]] SharedMemoryPlan plan_of(const CudaMatmulProblem& problem, const CudaMatmulChoice& choice,
                                       const Card& card);

}  // namespace sylvite
