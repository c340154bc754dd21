#pragma once
// Gradients of attention, and the sums that they need; see schedules/cuda/attention_gradient.cuh.

#include <vector>

#include "schedules/cuda/attention.h"

namespace sylvite {

/// What is computed: the gradient by q, k or v, or the logarithms of the sums of exp(score).
enum class AttentionGradientOf { queries, keys, values, sums };

/// Of Op::attention_gradient and Op::attention_sums over [batch, heads, rows, depth], bf16 or f16.
struct CudaAttentionGradientProblem : CudaAttentionExtents {
  using Operand = CudaAttentionProblem::Operand;
  AttentionGradientOf of = AttentionGradientOf::queries;
  Operand q, k, v, gradient, out;  ///< of the sums q and k alone
  int sums = -1, products = -1;    ///< dense, [batch, heads, queries]
  std::optional<CudaAttentionProblem::Mask> mask;
  int out_argument = 0;
  DType element = DType::bf16;
  bool causal = false;
  double scale = 1;
};
[[nodiscard]] Reading<CudaAttentionGradientProblem> read_cuda_attention_gradient(const Kernel& kernel);

/// The numbers that may vary.
struct CudaAttentionGradientChoice {
  int warps = 4;   ///< of 16 rows each
  int block = 64;  ///< columns
  int resident = 2;
  bool operator==(const CudaAttentionGradientChoice&) const = default;
};
/// Choices worth racing, the best guess first. Never empty.
[[nodiscard]] std::vector<CudaAttentionGradientChoice> cuda_attention_gradient_choices(
    const CudaAttentionGradientProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_attention_gradient(const CudaAttentionGradientProblem& problem,
                                                        const CudaAttentionGradientChoice& choice);

}  // namespace sylvite
