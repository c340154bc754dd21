#pragma once
// Matrix products that several operators share.

#include "frontend/onnx/import_context.h"

namespace sylvite {

/// numpy's rule: a vector on the left is a row, on the right a column, and its axis vanishes from the result.
[[nodiscard]] Sym numpy_matmul(Sym a, Sym b);

/// alpha a b + beta c, as inputs 0 to 2 and the attributes of the node say.
[[nodiscard]] Sym gemm(ImportContext& c);

}  // namespace sylvite
