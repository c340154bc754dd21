#pragma once
// The templates of rows that are folded and used again: norms and softmax, their gradients and what is kept for these; see
// schedules/cuda/row_folds.cuh, and row_walks.cuh for rows that do not fit into registers.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/norm.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[row, column] = epilogue(x[row, column], sums[row]) with sums[row] of work on x[row, :] and on the sums before, all
/// computed in f32. A sum may be the greatest instead.
struct CudaRowFoldsProblem {
  struct Fold {
    PointwiseText text;  ///< what it takes; its operands are called as those of `operands`, or as a sum
    bool is_max = false;
    int pass = 0;  ///< one more than that of the sums that it reads
  };
  std::vector<Fold> folds;
  bool has_row = true;  ///< else all results are numbers, of two sums at least, or of one row
  PointwiseText epilogue;
  /// Further results, a number for each row: work on the sums alone.
  struct Number {
    PointwiseText text;
    DType out = DType::f32;
  };
  std::vector<Number> numbers;
  std::vector<CudaOperand> operands;  ///< of all of it, each once
  DType out = DType::f32;             ///< of the first result
  std::int64_t rows = 0, columns = 0;
  int out_argument = 0;  ///< numbers follow it
  bool is_open = false;  ///< runs give the rows
};
[[nodiscard]] Reading<CudaRowFoldsProblem> read_cuda_row_folds(const Kernel& kernel);

/// As of the row template, but that with `items` rows are walked, with so many vectors under way. Choices worth racing, the best
/// guess first; none when the rows are few and very long.
[[nodiscard]] std::vector<CudaNormChoice> cuda_row_folds_choices(const CudaRowFoldsProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_row_folds(const CudaRowFoldsProblem& problem,
                                               const CudaNormChoice& choice);

}  // namespace sylvite
