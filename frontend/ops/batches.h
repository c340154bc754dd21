#pragma once
// Matrices in tensors: the last two dims; those before them number the matrices, and broadcast.

#include "base/error.h"
#include "sylvite/types.h"

namespace sylvite {

/// How many matrices `dims` hold.
[[nodiscard]] inline std::int64_t batch_count(const Dims& dims) {
  return checked_product(Dims(dims.begin(), dims.end() - 2), "batches");
}

/// Which matrix of an operand with `dims` belongs to matrix number `batch` of the broadcast result.
[[nodiscard]] std::int64_t batch_of(std::int64_t batch, const Dims& result, const Dims& dims);

}  // namespace sylvite
