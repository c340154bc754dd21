#pragma once
// The row template: layer_norm and rms_norm with a row in registers; see schedules/cuda/norm.cuh.

#include <string>
#include <vector>

#include "lowering/pointwise_text.h"
#include "lowering/problems.h"
#include "schedules/cuda_template.h"

namespace sylvite {

/// out[row, column] = epilogue(norm of prologue(row) * scale + shift), all computed in f32.
struct CudaNormProblem {
  /// What is read at [row, column]: strides in elements; `column` is 1 or 0.
  struct Operand {
    PointwiseOperand of;
    std::int64_t row = 0, column = 0;
  };
  PointwiseText prologue, epilogue;
  std::vector<Operand> prologue_operands, epilogue_operands;
  Operand scale, shift;  ///< of.input is -1 where there is none
  DType out = DType::f32;
  std::int64_t rows = 0, columns = 0;
  bool is_centred = true;
  double epsilon = 0;
  int out_argument = 0;
};
[[nodiscard]] Reading<CudaNormProblem> read_cuda_norm(const Kernel& kernel);

/// The numbers that may vary.
struct CudaNormChoice {
  int threads = 32;      ///< of a row
  int rows = 4;          ///< of a block
  bool streams = false;  ///< what passes by once is the first to leave the L2 cache
  bool operator==(const CudaNormChoice&) const = default;
};

/// Columns that a thread takes together: 16 bytes of the result, or a divisor of the columns.
[[nodiscard]] int vector_of(const CudaNormProblem& problem);
/// Choices worth racing, the best guess first; none when a row does not fit into registers.
[[nodiscard]] std::vector<CudaNormChoice> cuda_norm_choices(const CudaNormProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_norm(const CudaNormProblem& problem, const CudaNormChoice& choice);

}  // namespace sylvite
