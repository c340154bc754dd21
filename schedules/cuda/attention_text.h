#pragma once
// What the heads of all attention kernels have. Internal to schedules/.

#include <string>

#include "schedules/cuda/attention.h"
#include "schedules/cuda/extents.h"

namespace sylvite {

/// Constants that schedules/cuda/attention_scores.cuh and the kernels read; `width`: of WIDTH.
[[nodiscard]] std::string attention_constants(const CudaAttentionProblem& problem,
                                              const CudaAttentionChoice& choice, int width);
/// struct Arguments, of the mask and what is open, and Extents; `with_lies`: q, k, v and out are pointers, and their strides
/// extents, too: see attention_lies.
[[nodiscard]] std::string attention_arguments(const CudaAttentionProblem& problem, bool with_lies);
[[nodiscard]] std::vector<CudaExtent> attention_extents(const CudaAttentionProblem& problem, bool with_lies);
/// Behind others: how a mask lies, and the strides that lie_NAME reads.
void add_mask_extents(const std::optional<CudaAttentionProblem::Mask>& mask, bool is_open,
                      std::vector<CudaExtent>& extents);
void add_lie_extents(const std::string& name, const CudaAttentionProblem::Operand& operand, bool is_open,
                     std::vector<CudaExtent>& extents);
/// Of heads that are walked together, so that what they read stays in the L2 cache.
[[nodiscard]] std::int64_t rows_in_l2(std::int64_t bytes_of_row);
/// Of `rows` rows, `depth` wide, in boxes of 64 columns.
[[nodiscard]] CudaTensorMap attention_map(const CudaAttentionExtents& extents, DType element,
                                          const CudaAttentionProblem::Operand& operand, std::int64_t depth,
                                          std::int64_t rows, int box_rows);
/// multiply_scores and multiply_values of attention.cuh: products of a warpgroup with `columns` of scores, and of values.
[[nodiscard]] std::string attention_products(DType element, int scores, int values);
/// Whether there is a mask, and of what type.
[[nodiscard]] std::string attention_mask_type(const std::optional<CudaAttentionProblem::Mask>& mask);
/// struct Lie, of a tensor's strides; and lie_NAME, one of them, whose strides of the batch and of heads are extents.
[[nodiscard]] std::string lie_text();
[[nodiscard]] std::string lie_text(const char* name, const CudaAttentionProblem::Operand& operand);
/// lie_q, lie_k, lie_v and lie_out, DEPTH and VALUE_DEPTH.
[[nodiscard]] std::string attention_lies(const CudaAttentionProblem& problem);
/// Name of the kernel in its machine code.
[[nodiscard]] std::string attention_entry(const CudaAttentionProblem& problem);

}  // namespace sylvite
