#pragma once
// The column template: folds that leave the innermost dims; see schedules/cuda/columns.cuh.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// One result of the template.
struct CudaColumnFold {
  PointwiseText prologue, epilogue;
  std::vector<CudaOperand> epilogue_operands;  ///< they have no row
  DType out = DType::f32;
};
/// out[batch, column] = epilogue(fold over rows of prologue(x[batch, row, column])) for each of `folds`, all computed in f32.
struct CudaColumnsProblem {
  std::vector<CudaColumnFold> folds;           ///< in the order of the kernel's outputs
  std::vector<CudaOperand> prologue_operands;  ///< of all folds, each once
  std::string fold;                            ///< C of a and b
  std::string identity;                        ///< C
  std::int64_t batch = 1, rows = 0, columns = 0;
  bool has_open_rows = false;  ///< runs give how many
  int first_out_argument = 0;
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
