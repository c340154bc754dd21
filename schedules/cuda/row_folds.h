#pragma once
// The templates of rows that are folded, and perhaps used again: sums, extremes and their places, norms and softmax, their gradients
// and what is kept for these; see schedules/cuda/row_folds.cuh, and row_walks.cuh for rows that do not fit into registers.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/norm.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// What a fold makes of the numbers of a row.
enum class RowFoldKind { sum, most, least, product, count, place_of_most, place_of_least };

/// out[row, column] = epilogue(x[row, column], folds[row]) with folds[row] of work on x[row, :] and on the folds before, all
/// computed in f32, but for counts of what is true, and places of the greatest or the least, which are whole numbers.
struct CudaRowFoldsProblem {
  struct Fold {
    PointwiseText text;  ///< what it takes; its operands are called as those of `operands`, or as a fold
    RowFoldKind kind = RowFoldKind::sum;
    bool takes_last = false;  ///< a place: of equal elements the last
    int pass = 0;             ///< one more than that of the folds that it reads
  };
  std::vector<Fold> folds;
  bool has_row = true;  ///< else all results are numbers
  PointwiseText epilogue;
  /// Further results, a number for each row: work on the folds and on what is read of each row once, or a fold as it is.
  struct Number {
    PointwiseText text;
    std::vector<CudaOperand> operands;
    DType out = DType::f32;
    int fold = -1;             ///< as it is; -1: work
    std::vector<DType> types;  ///< that the fold has one after the other, the last as it is stored
  };
  std::vector<Number> numbers;
  std::vector<CudaOperand> operands;  ///< of all of it, each once
  DType out = DType::f32;             ///< of the first result
  std::int64_t rows = 0, columns = 0;
  int out_argument = 0;           ///< numbers follow it
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
/// C for fold number `fold` of `sums`.
[[nodiscard]] std::string row_fold_name(std::size_t fold);
[[nodiscard]] CudaTemplate make_cuda_row_folds(const CudaRowFoldsProblem& problem,
                                               const CudaRowFoldsChoice& choice);

}  // namespace sylvite
