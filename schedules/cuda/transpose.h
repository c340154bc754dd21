#pragma once
// The transpose template: two runs of dims that change places; see schedules/cuda/transpose.cuh.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[batch, column, row] = x[batch, row, column], where x may be a slice of longer rows. Bits are moved, whatever they mean. A
/// change between images with their channels innermost and dense ones is one, too.
struct CudaTransposeProblem {
  int bytes = 2;  ///< of an element
  std::int64_t batch = 1, rows = 0, columns = 0;
  std::int64_t pitch = 0, offset = 0;  ///< of x, in elements: from a row to the next, and ahead of the first
  int argument = 0, out_argument = 1;

  /// Elements that are moved together: of up to 16 bytes, and a divisor of rows, columns, pitch and offset.
  [[nodiscard]] int unit() const;
};
[[nodiscard]] Reading<CudaTransposeProblem> read_cuda_transpose(const Kernel& kernel);

/// The numbers that may vary.
struct CudaTransposeChoice {
  int down = 8, across = 8;  ///< squares of unit() elements a side in a block's tile
  bool rows_first = false;   ///< neighbouring blocks take tiles down the rows
  int streams = 0;  ///< what is the first to leave the L2 cache: 1 what is read, 2 the result, 3 both
  bool operator==(const CudaTransposeChoice&) const = default;
  [[nodiscard]] std::string to_string() const;
};

/// Choices worth racing, the best guess first. Never empty.
[[nodiscard]] std::vector<CudaTransposeChoice> cuda_transpose_choices(const CudaTransposeProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_transpose(const CudaTransposeProblem& problem,
                                               const CudaTransposeChoice& choice);

}  // namespace sylvite
