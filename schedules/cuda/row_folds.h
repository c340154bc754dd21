#pragma once
// The templates of rows that are folded, and perhaps used again: sums, extremes and their places, norms and softmax, their gradients
// and what is kept for these; see schedules/cuda/row_folds.cuh, and row_walks.cuh for rows that do not fit into registers.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/folds.h"
#include "schedules/cuda/norm.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[row, column] = epilogue(x[row, column], folds[row]) with folds[row] of work on x[row, :].
struct CudaRowFoldsProblem : CudaFolds {
  std::int64_t rows = 0, columns = 0;
  bool is_open = false;           ///< runs give the rows
  bool has_open_columns = false;  ///< and the columns, of numbers alone
};
[[nodiscard]] Reading<CudaRowFoldsProblem> read_cuda_row_folds(const Kernel& kernel);

/// As of the row template, but that with `items` rows are walked, with so many vectors under way.
struct CudaRowFoldsChoice : CudaNormChoice {
  int cluster = 1;  ///< blocks that walk a row together
  bool operator==(const CudaRowFoldsChoice&) const = default;
  [[nodiscard]] std::string to_string() const;
};
/// Choices worth racing, the best guess first; none when rows that are used again are few and very long. `most_blocks` of a cluster.
[[nodiscard]] std::vector<CudaRowFoldsChoice> cuda_row_folds_choices(const CudaRowFoldsProblem& problem,
                                                                     int most_blocks);
/// Columns that a thread takes together.
[[nodiscard]] int vector_of(const CudaRowFoldsProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_row_folds(const CudaRowFoldsProblem& problem,
                                               const CudaRowFoldsChoice& choice);

}  // namespace sylvite
