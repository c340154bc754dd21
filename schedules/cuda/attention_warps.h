#pragma once
// Attention of 16-bit elements by products of single warps, on every card from Ampere on: see attention_warps.cuh.

#include <string>
#include <vector>

#include "schedules/cuda/attention.h"

namespace sylvite {

/// The numbers that may vary.
struct CudaAttentionWarpsChoice {
  int warps = 4;
  int sixteens = 2;  ///< of queries of a warp, times 16; warps times sixteens are a multiple of 4
  int block = 64;    ///< keys
  int resident = 2;  ///< blocks on a multiprocessor, at least
  bool keeps_queries = true;

  [[nodiscard]] std::string to_string() const;
  bool operator==(const CudaAttentionWarpsChoice&) const = default;
};

/// Why the choice cannot be made for the problem; empty when it can.
[[nodiscard]] std::string refuse_attention_warps(const CudaAttentionProblem& problem,
                                                 const CudaAttentionWarpsChoice& choice, const Card& card);
/// REQUIRES refuse_attention_warps empty.
[[nodiscard]] CudaTemplate make_attention_warps(const CudaAttentionProblem& problem,
                                                const CudaAttentionWarpsChoice& choice);
/// Choices worth racing, the best guess first.
[[nodiscard]] std::vector<CudaAttentionWarpsChoice> attention_warps_choices(
    const CudaAttentionProblem& problem, const Card& card);

}  // namespace sylvite
