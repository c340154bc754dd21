#pragma once
// Matmuls and convolutions by products of single warps (warps.cuh): on every card from Ampere on, and on Hopper for what
// tensor memory access cannot read.

#include <string>
#include <vector>

#include "schedules/card.h"
#include "schedules/cuda/matmul.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// The numbers that may vary; their names are those of warps.cuh.
struct CudaWarpsChoice {
  int tile_x = 128, tile_y = 128;
  int warps_x = 2, warps_y = 2;
  int parts = 1;
  int stage_row = 64;
  int stages = 4;
  int resident = 1;
  bool exact = false;  ///< of f32: three products in TF32 for each; else one

  [[nodiscard]] std::string to_string() const;  ///< e.g. 128x256 w2x4 64s4 r1
  bool operator==(const CudaWarpsChoice&) const = default;
};

/// Why the choice cannot be made for the problem; empty when it can.
[[nodiscard]] std::string refuse_cuda_warps(const CudaMatmulProblem& problem, const CudaWarpsChoice& choice,
                                            const Card& card);
/// REQUIRES refuse_cuda_warps empty.
[[nodiscard]] CudaTemplate make_cuda_warps(const CudaMatmulProblem& problem, const CudaWarpsChoice& choice);
/// What a choice of these should take, in clocks of a multiprocessor, to compare it with others for the same problem.
[[nodiscard]] double cuda_warps_clocks(const CudaMatmulProblem& problem, const CudaWarpsChoice& choice,
                                       const Card& card);
/// Choices worth racing, the best guess first.
[[nodiscard]] std::vector<CudaWarpsChoice> cuda_warps_choices(const CudaMatmulProblem& problem, bool exact,
                                                              const Card& card);

}  // namespace sylvite
