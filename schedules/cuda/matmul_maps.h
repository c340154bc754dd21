#pragma once
// The tensors that a matmul template reads and writes in boxes. Internal to schedules/.

#include <vector>

#include "schedules/cuda/matmul_plan.h"

namespace sylvite {

/// What the operand is of a convolution, or of a filter's gradient.
[[nodiscard]] bool has_windows(const CudaMatmulProblem& problem, const MatmulOperand& operand);
[[nodiscard]] bool is_filter(const CudaMatmulProblem& problem, const MatmulOperand& operand);
/// Why tensor memory access cannot read the operands where they lie; empty when it can.
[[nodiscard]] std::string refuse_tensor_maps(const CudaMatmulProblem& problem);
/// Of the side x (or y), cut into slices for the blocks that share it.
[[nodiscard]] CudaTensorMap side_map(const CudaMatmulProblem& problem, const MatmulOperand& operand,
                                     std::int64_t rows, int slice);
/// The result's, and those of the epilogue's operands that come into its buffers and beside them; empty maps where there is none.
[[nodiscard]] std::vector<CudaTensorMap> result_maps(const CudaMatmulProblem& problem,
                                                     const CudaMatmulChoice& choice,
                                                     const SharedMemoryPlan& plan,
                                                     const std::vector<EpilogueTerm>& terms);

}  // namespace sylvite
