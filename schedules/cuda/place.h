#pragma once
// Values written where indices say; see schedules/cuda/place.cuh.

#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[batch, place, column] = updates[batch, i, column] of the last i whose place it is, else x[batch, place, column].
struct CudaPlaceProblem {
  std::int64_t batches = 1, places = 0, columns = 1;
  std::int64_t updates = 0, indices_of_update = 1;
  Dims extents;  ///< of each index of an update
  Dims strides;  ///< places that a step of it is
  /// Of scatter_elements: the other coordinates of an update, innermost first: how many, and places that a step is.
  Dims counts, steps;
  DType element = DType::f32, index = DType::i64;
  bool onto_zeros = false;  ///< x is none
  std::int64_t part = 0;    ///< updates whose least and greatest index are given; 0: of none
  int x = 0, indices = 0, updates_argument = 0, least = -1, greatest = -1, out = 0;
};
[[nodiscard]] Reading<CudaPlaceProblem> read_cuda_place(const Kernel& kernel);

/// The numbers that may vary.
struct CudaPlaceChoice {
  int own = 0;      ///< places of a block
  int cluster = 1;  ///< blocks that share the walk over the indices
  bool operator==(const CudaPlaceChoice&) const = default;
};
/// Choices worth racing, the best guess first. Never empty.
[[nodiscard]] std::vector<CudaPlaceChoice> cuda_place_choices(const CudaPlaceProblem& problem,
                                                              int most_blocks = 8);
[[nodiscard]] CudaTemplate make_cuda_place(const CudaPlaceProblem& problem, const CudaPlaceChoice& choice);

}  // namespace sylvite
