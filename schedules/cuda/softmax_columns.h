#pragma once
// The template of softmax and running sums along rows of columns; see schedules/cuda/softmax_columns.cuh.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[batch, row, column] = epilogue(softmax over rows of prologue[batch, row, column]), or its logarithm, or running sums over
/// rows instead, computed in f32.
struct CudaSoftmaxColumnsProblem {
  PointwiseText prologue, epilogue;
  std::vector<CudaOperand> prologue_operands, epilogue_operands;
  DType out = DType::f32;
  std::string function;                           ///< softmax, log_softmax or cumsum
  bool is_exclusive = false, is_reverse = false;  ///< of cumsum
  std::int64_t batches = 1, rows = 1, columns = 1;
  bool is_open = false;  ///< runs give the batches' number
  int out_argument = 0;
};
[[nodiscard]] Reading<CudaSoftmaxColumnsProblem> read_cuda_softmax_columns(const Kernel& kernel);

/// The numbers that may vary.
struct CudaSoftmaxColumnsChoice {
  int vector = 1;        ///< columns that a thread takes together
  int parts = 1;         ///< threads that share the rows of a column
  int threads = 128;     ///< of a block
  bool streams = false;  ///< what is read and written is the first to leave the L2 cache
  bool operator==(const CudaSoftmaxColumnsChoice&) const = default;
  [[nodiscard]] std::string to_string() const;
};

/// Choices worth racing, the best guess first; none where the rows of a column do not fit into the registers of a block.
[[nodiscard]] std::vector<CudaSoftmaxColumnsChoice> cuda_softmax_columns_choices(
    const CudaSoftmaxColumnsProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_softmax_columns(const CudaSoftmaxColumnsProblem& problem,
                                                     const CudaSoftmaxColumnsChoice& choice);

}  // namespace sylvite
