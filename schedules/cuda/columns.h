#pragma once
// The column template: folds that leave the innermost dims, and work with them; see schedules/cuda/columns.cuh.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/folds.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// Folds over the rows of each of `columns`: out[batch, column] of work on the folds, or out[batch, row, column] of work on x and them.
struct CudaColumnsProblem : CudaFolds {
  std::int64_t batch = 1, rows = 0, columns = 0;
  bool has_open_rows = false;  ///< runs give how many
};
[[nodiscard]] Reading<CudaColumnsProblem> read_cuda_columns(const Kernel& kernel);

/// The numbers that may vary.
struct CudaColumnsChoice {
  int lanes = 32;        ///< threads side by side
  int deep = 8;          ///< threads on top of each other
  int unroll = 8;        ///< rows that a thread has under way
  int cluster = 8;       ///< blocks that fold one strip of columns
  bool streams = false;  ///< what is read is the first to leave the L2 cache
  bool operator==(const CudaColumnsChoice&) const = default;
  [[nodiscard]] std::string to_string() const;
};

/// Choices worth racing, the best guess first. Never empty.
[[nodiscard]] std::vector<CudaColumnsChoice> cuda_columns_choices(const CudaColumnsProblem& problem,
                                                                  int most_blocks = 8);
[[nodiscard]] CudaTemplate make_cuda_columns(const CudaColumnsProblem& problem,
                                             const CudaColumnsChoice& choice);

}  // namespace sylvite
