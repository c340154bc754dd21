#pragma once
// The row template: norms, softmax and pointwise work with a row in registers; see schedules/cuda/norm.cuh.

#include <functional>
#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// out[row, column] = epilogue(function of prologue(row) * scale + shift), all computed in f32.
struct CudaNormProblem {
  PointwiseText prologue, epilogue;
  std::vector<CudaOperand> prologue_operands, epilogue_operands;
  CudaOperand scale, shift;  ///< of.input is -1 where there is none
  DType out = DType::f32;
  std::int64_t rows = 0, columns = 0;
  std::string function;  ///< layer_norm, rms_norm, softmax, log_softmax, cumsum; keep: pointwise work alone
  std::string outside;   ///< what columns beyond the row count as, in C
  double epsilon = 0;
  bool is_exclusive = false, is_reverse = false;  ///< running sums
  int out_argument = 0;
  bool is_open = false;           ///< runs give the rows
  bool has_open_columns = false;  ///< and the columns
};
[[nodiscard]] Reading<CudaNormProblem> read_cuda_norm(const Kernel& kernel);

/// The numbers that may vary.
struct CudaNormChoice {
  int threads = 32;      ///< of a row: 4, 8, 16, or a multiple of 32
  int rows = 4;          ///< of a block, side by side
  bool streams = false;  ///< what is read once, and the result, are the first to leave the L2 cache
  int items = 0;         ///< of open columns: how many vectors a thread holds; 0: as many as there are
  bool operator==(const CudaNormChoice&) const = default;
  [[nodiscard]] std::string to_string() const;
};

/// How a template holds rows in registers of threads.
struct HeldRows {
  std::int64_t columns = 0;
  int vector = 1;                             ///< columns that a thread takes together
  std::int64_t operands = 1;                  ///< whose values it holds
  int least_threads = 0;                      ///< of a row
  int most_rows = 0;                          ///< of a block
  std::int64_t well_held = 0, most_held = 0;  ///< values in a thread's registers
};
/// Choices worth racing, the best guess first; none when a row does not fit into registers.
[[nodiscard]] std::vector<CudaNormChoice> choices_of(const HeldRows& rows);

/// Do runs of a kernel leave all dims of a value's rows as they are, but for the first?
[[nodiscard]] bool has_fixed_rows(const Kernel& kernel, ValueId value);
/// Do they give its innermost dim?
[[nodiscard]] bool has_open_columns(const Kernel& kernel, ValueId value);

/// The constants of schedules/cuda/rows.cuh for rows of `columns`, or, where runs give how many, of so many at most.
[[nodiscard]] std::string held_text(std::int64_t columns, int threads, int vector, bool is_open = false);

/// The kernel around run_rows(arguments), which `text_of` writes for threads that take so many columns together. Rows of open
/// columns are taken by vectors where all of them are aligned, else by single numbers.
[[nodiscard]] std::string rows_kernel_text(bool has_open_columns, int vector,
                                           const std::function<std::string(int)>& text_of);

/// Columns that a thread takes together: 16 bytes of the result, or a divisor of the columns where these are known.
[[nodiscard]] int vector_of(const CudaNormProblem& problem);
/// Choices worth racing, the best guess first; none when a row does not fit into registers.
[[nodiscard]] std::vector<CudaNormChoice> cuda_norm_choices(const CudaNormProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_norm(const CudaNormProblem& problem, const CudaNormChoice& choice);

}  // namespace sylvite
