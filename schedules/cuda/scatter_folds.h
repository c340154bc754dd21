#pragma once
// Values folded into those that are where indices say; see schedules/cuda/scatter_folds.cuh.

#include <optional>
#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[batch, place, column] = x[batch, place, column] folded with updates[batch, i, column] for all i whose place it is.
struct CudaScatterFoldsProblem {
  std::int64_t batches = 1, places = 0, columns = 1;
  std::int64_t updates = 0;  ///< of a column
  std::int64_t indices_of_update =
      0;                  ///< for all columns of an update; 0: each column has an index of its own
  Dims extents, strides;  ///< of each index: how far it goes, and places that a step of it is
  DType element = DType::f32, index = DType::i64;
  std::string reduction;
  std::optional<double> initial;  ///< of all places; then x is none
  int x = 0, indices = 0, updates_argument = 0, out = 0;
};
[[nodiscard]] Reading<CudaScatterFoldsProblem> read_cuda_scatter_folds(const Kernel& kernel);

/// The numbers that may vary.
struct CudaScatterFoldsChoice {
  int own = 0;       ///< places of a block
  int width = 1;     ///< columns of a block
  int segments = 1;  ///< copies of these, each for its part of the updates
  int together = 1;  ///< updates of a column that a warp folds at once into a copy: 1, or 32 / width
  bool operator==(const CudaScatterFoldsChoice&) const = default;
};
/// Choices worth racing, the best guess first. Never empty.
[[nodiscard]] std::vector<CudaScatterFoldsChoice> cuda_scatter_folds_choices(
    const CudaScatterFoldsProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_scatter_folds(const CudaScatterFoldsProblem& problem,
                                                   const CudaScatterFoldsChoice& choice);

}  // namespace sylvite
