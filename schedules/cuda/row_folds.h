#pragma once
// The template of rows that are folded and used again: gradients of norms and of softmax; see schedules/cuda/row_folds.cuh.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/norm.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[row, column] = epilogue(x[row, column], sums[row]) with sums[row] of work on x[row, :] and on the sums before, all
/// computed in f32.
struct CudaRowFoldsProblem {
  std::vector<PointwiseText>
      folds;  ///< what each sum adds; its operands are called as those of `operands`, or as a sum
  PointwiseText epilogue;
  /// Further results, a number for each row: work on the sums alone.
  struct Number {
    PointwiseText text;
    DType out = DType::f32;
  };
  std::vector<Number> numbers;
  std::vector<CudaOperand> operands;  ///< of all of it, each once
  DType out = DType::f32;
  std::int64_t rows = 0, columns = 0;
  int out_argument = 0;  ///< numbers follow it
  bool is_open = false;  ///< runs give the rows
};
[[nodiscard]] Reading<CudaRowFoldsProblem> read_cuda_row_folds(const Kernel& kernel);

/// As of the row template. Choices worth racing, the best guess first; none when a row does not fit into registers.
[[nodiscard]] std::vector<CudaNormChoice> cuda_row_folds_choices(const CudaRowFoldsProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_row_folds(const CudaRowFoldsProblem& problem,
                                               const CudaNormChoice& choice);

}  // namespace sylvite
