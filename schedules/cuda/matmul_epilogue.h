#pragma once
// The epilogue of a product as text of the templates that make products. A thread has pairs of neighbours along y, of rows x;
// x and y are seen from the kernel. Internal to schedules/.

#include <string>
#include <vector>

#include "schedules/cuda/extents.h"
#include "schedules/cuda/matmul.h"

namespace sylvite {

/// How an operand that lies as the result does comes through shared memory, if it does: in boxes, into the buffers of the
/// result, whose elements are as wide, or into buffers of its own.
enum class EpilogueBox { none, in_place, beside };

/// An epilogue operand seen from the kernel. A vector varies along one side at most and passes through
/// shared memory; the rest is loaded where it is needed.
struct EpilogueTerm {
  const PointwiseOperand* operand;
  std::int64_t batch, x, y;  ///< strides
  int offset = 0;            ///< of a vector, in floats
  int extent = 0;            ///< of a vector
  EpilogueBox box = EpilogueBox::none;
  [[nodiscard]] bool is_vector() const { return x == 0 || y == 0; }
};

/// What finishes a part of the result at once; vectors are as long as its sides.
struct EpilogueTile {
  bool swapped = false;  ///< x is n, and y is m
  int rows = 0, columns = 0;
};
[[nodiscard]] std::vector<EpilogueTerm> epilogue_terms(const CudaMatmulProblem& problem,
                                                       const EpilogueTile& tile);
/// The extents of a product as its text has them: x and y as the kernel sees them, the batch, and lines and columns of the
/// images that a convolution makes.
[[nodiscard]] std::vector<CudaExtent> product_extents(const CudaMatmulProblem& problem, bool swapped);
/// Name of such a kernel in its machine code.
[[nodiscard]] std::string product_entry(const std::string& name, const CudaMatmulProblem& problem);
/// Floats of shared memory that the vectors take.
[[nodiscard]] int vector_floats_of(const std::vector<EpilogueTerm>& terms);

struct EpilogueText {
  std::string operands;             ///< members of Arguments between `out` and what the epilogue reads
  std::vector<CudaExtent> extents;  ///< those of product_extents
  bool swapped = false;             ///< as there
  int threads = 0;                  ///< that stage vectors together
  bool y_is_even = false;           ///< so that pairs lie aligned
  /// How long a row of the result is.
  [[nodiscard]] const CudaExtent& row() const { return extents.at(swapped ? 0 : 1); }
};
/// struct Arguments, Extents, and the functions stage_vectors, load_operands, set_residual, set_beside and finish.
[[nodiscard]] std::string epilogue_text(const CudaMatmulProblem& problem,
                                        const std::vector<EpilogueTerm>& terms, const EpilogueText& how);

}  // namespace sylvite
