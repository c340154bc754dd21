#pragma once
// What the heads of all attention kernels have. Internal to schedules/.

#include <string>

#include "schedules/cuda/attention.h"

namespace sylvite {

/// Constants that schedules/cuda/attention_scores.cuh and the kernels read; `width`: of WIDTH.
[[nodiscard]] std::string attention_constants(const CudaAttentionProblem& problem,
                                              const CudaAttentionChoice& choice, int width);
/// Of them, those of the mask.
[[nodiscard]] std::string attention_mask_constants(const std::optional<CudaAttentionProblem::Mask>& mask,
                                                   std::int64_t keys);
/// struct Lie, of a tensor's strides; and one of them by name.
[[nodiscard]] std::string lie_text();
[[nodiscard]] std::string lie_text(const char* name, const CudaAttentionProblem::Operand& operand);
/// Q, K, V and OUT as strides, DEPTH and VALUE_DEPTH.
[[nodiscard]] std::string attention_lies(const CudaAttentionProblem& problem);
/// Name of the kernel in its machine code.
[[nodiscard]] std::string attention_entry(const CudaAttentionProblem& problem);

}  // namespace sylvite
