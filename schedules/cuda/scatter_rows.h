#pragma once
// Rows of a table with others folded in where indices say; see schedules/cuda/scatter_rows.cuh.

#include <optional>
#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[batch, row] = x[batch, row] folded with the batch's updates whose index is row, in f32.
struct CudaScatterRowsProblem {
  std::int64_t batches = 1;
  bool shares_indices = false;  ///< all batches have the same
  std::string reduction = "add";
  std::int64_t table = 0, columns = 0, count = 0;  ///< of a batch: rows and columns of x; rows of the updates
  std::optional<double> initial;                   ///< of all rows; then x is none
  DType out = DType::f32, index = DType::i64;
  int x = 0, indices = 0, updates = 0, out_argument = 0;
  bool is_open = false;  ///< runs give the count
};
[[nodiscard]] Reading<CudaScatterRowsProblem> read_cuda_scatter_rows(const Kernel& kernel);

/// The numbers that may vary.
struct CudaScatterRowsChoice {
  int rows = 32;  ///< of a block
  bool operator==(const CudaScatterRowsChoice&) const = default;
};
/// Choices worth racing, the best guess first. Never empty.
[[nodiscard]] std::vector<CudaScatterRowsChoice> cuda_scatter_rows_choices(
    const CudaScatterRowsProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_scatter_rows(const CudaScatterRowsProblem& problem,
                                                  const CudaScatterRowsChoice& choice);

}  // namespace sylvite
