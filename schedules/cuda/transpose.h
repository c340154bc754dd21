#pragma once
// The transpose template: orders of dims in which another one is innermost; see schedules/cuda/transpose.cuh.

#include <optional>
#include <string>
#include <vector>

#include "lowering/algorithms/pointwise_text.h"
#include "lowering/algorithms/problems.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[batch, column, row] = x[batch, row, column], where x may be a slice of longer rows. Bits are moved, whatever they mean, or
/// numbers of 16 bits become f32 on the way, or those f32 these; or work on single numbers, ahead of the transpose and behind it,
/// is done where they are read. A change between images with their channels innermost and dense ones is one, too. Rows are the dim that is innermost in the
/// result, columns the one that is innermost in x; batches are all other dims, which may lie between these and in another order.
struct CudaTransposeProblem {
  /// A dim of the batches, in elements from each to the next.
  struct Dim {
    std::int64_t extent = 1, x_stride = 0, out_stride = 0;
    bool operator==(const Dim&) const = default;
  };
  int bytes = 2;  ///< of an element; of the narrower one where they differ
  std::optional<DType> widens,
      narrows;  ///< the type of 16 bits of x, or of the result, where the other one is f32
  /// Work on a number, and what it is done on and stored as.
  struct Work {
    PointwiseText ahead, behind;
    DType from = DType::f32, to = DType::f32;
  };
  std::optional<Work> work;
  std::int64_t batch = 1, rows = 0, columns = 0;
  std::vector<Dim> batches;            ///< the outermost in x first
  std::int64_t pitch = 0, offset = 0;  ///< of x, in elements: from a row to the next, and ahead of the first
  std::int64_t out_pitch = 0;          ///< from a column to the next
  int argument = 0, out_argument = 1;
  bool is_open =
      false;  ///< runs give all of these numbers; else the outermost batches alone, which no text has

  /// Elements that are moved together: of up to 16 bytes, and a divisor of rows, columns, and what lies between them in any run.
  /// Behind a slice's columns may lie others of the longer row, which are read with them.
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
