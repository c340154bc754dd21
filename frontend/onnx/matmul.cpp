#include "frontend/onnx/matmul.h"

#include "base/error.h"

namespace sylvite {

Sym numpy_matmul(Sym a, Sym b) {
  if (a.rank() == 0 || b.rank() == 0) throw ModelError("a scalar cannot be multiplied as a matrix");
  Sym result = matmul(a.rank() == 1 ? unsqueeze(a, {0}) : a, b.rank() == 1 ? unsqueeze(b, {1}) : b);
  if (b.rank() == 1) result = squeeze(result, {-1});
  return a.rank() == 1 ? squeeze(result, {b.rank() == 1 ? -1 : -2}) : result;
}

Sym gemm(ImportContext& c) {
  Sym a = c.input(0);
  Sym b = c.input(1);
  if (a.rank() != 2 || b.rank() != 2)
    throw ModelError("A and B have ranks {} and {}, expected 2", a.rank(), b.rank());
  if (c.integer("transA", 0) != 0) a = swap_axes(a, 0, 1);
  if (c.integer("transB", 0) != 0) b = swap_axes(b, 0, 1);
  const double alpha = c.real("alpha", 1);
  const double beta = c.real("beta", 1);
  Sym result = matmul(a, b);
  if (alpha != 1) result = result * alpha;
  if (const Sym bias = c.optional(2); bias && beta != 0) result = result + (beta == 1 ? bias : bias * beta);
  return result;
}

}  // namespace sylvite
