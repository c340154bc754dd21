#pragma once
// Gradients of attention, and the sums that they need; see schedules/cuda/attention_slopes.cuh for what is computed,
// attention_gradient_hopper.cuh and attention_gradient.cuh for how.

#include <string>
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
  bool is_open = false;  ///< runs give the batch, queries and keys
};
[[nodiscard]] Reading<CudaAttentionGradientProblem> read_cuda_attention_gradient(const Kernel& kernel);

/// The numbers that may vary.
struct CudaAttentionGradientChoice {
  bool hopper = false;  ///< products of warpgroups, by Hopper's instructions; else of single warps
  int warps = 4;        ///< of 16 rows each; with hopper a multiple of 4
  int block = 64;       ///< columns
  int stages = 2;       ///< blocks of columns in shared memory
  int resident = 2;     ///< blocks on a multiprocessor, at least

  [[nodiscard]] std::string to_string() const;
  bool operator==(const CudaAttentionGradientChoice&) const = default;
};
/// Choices worth racing, the best guess first. Never empty. `hopper`: whether its instructions may be used.
[[nodiscard]] std::vector<CudaAttentionGradientChoice> cuda_attention_gradient_choices(
    const CudaAttentionGradientProblem& problem, bool hopper);
[[nodiscard]] CudaTemplate make_cuda_attention_gradient(const CudaAttentionGradientProblem& problem,
                                                        const CudaAttentionGradientChoice& choice);

}  // namespace sylvite
