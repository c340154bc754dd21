#pragma once
// Concats as one copy of vectors: a kernel's problem and a choice of numbers become CUDA C++ text.

#include <string>
#include <vector>

#include "lowering/algorithms/problems.h"
#include "schedules/cuda/operands.h"
#include "schedules/cuda/template.h"

namespace sylvite {

/// Row r of the result is row r of each part, one behind the other, and pointwise work on that.
struct CudaConcatProblem {
  struct Part {
    std::int64_t end = 0;  ///< the column of the result behind its last
    CudaOperand of;        ///< read at [row, column of the part]
  };
  std::vector<Part> parts;
  std::int64_t rows = 0, columns = 0;
  bool is_open = false;   ///< runs give the rows
  std::int64_t unit = 0;  ///< 0: columns are known; else runs give them, and this divides those of each part
  DType element = DType::bf16;  ///< of the parts
  DType out = DType::bf16;
  int out_argument = 0;
  PointwiseText epilogue;
  std::vector<CudaOperand> epilogue_operands;

  /// Neighbours that lie together in every part and in the result, 16 bytes at most.
  [[nodiscard]] std::int64_t vector() const;
};
[[nodiscard]] Reading<CudaConcatProblem> read_cuda_concat(const Kernel& kernel);

/// A thread makes `items` vectors, `threads` apart.
struct CudaConcatChoice {
  int items = 4;
  int threads = 128;
  bool operator==(const CudaConcatChoice&) const = default;
  [[nodiscard]] std::string to_string() const;
};
/// Choices worth racing, the best guess first.
[[nodiscard]] std::vector<CudaConcatChoice> cuda_concat_choices(const CudaConcatProblem& problem);
[[nodiscard]] CudaTemplate make_cuda_concat(const CudaConcatProblem& problem, const CudaConcatChoice& choice);

}  // namespace sylvite
