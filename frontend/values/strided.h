#pragma once
// Walking and copying dense tensors by strides.

#include "sylvite/tensor.h"

namespace sylvite {

/// Dims seen from one axis: everything before it, its extent, everything after it.
struct AxisView {
  std::int64_t outer = 1;
  std::int64_t extent = 1;
  std::int64_t inner = 1;
};
[[nodiscard]] AxisView view_axis(const Dims& dims, std::int64_t axis);

/// Copies the elements at `offset + sum(i[d] * strides[d])` of the source, for every index i below dims in
/// row-major order, to `target_offset + sum(i[d] * target_strides[d])` of the target. Offsets and strides are
/// in elements.
struct StridedCopy {
  Dims dims;
  Dims strides;
  std::int64_t offset = 0;
  Dims target_strides;
  std::int64_t target_offset = 0;
};
void copy_strided(const StridedCopy& copy, const void* source, void* target, std::size_t element_size);

/// The dims in another order: result[i] = dims[perm[i]]. REQUIRES a permutation.
[[nodiscard]] Dims permuted(const Dims& dims, const Dims& perm);
/// The tensor with its axes in that order. Weights are often stored transposed, so large ones take a few threads.
[[nodiscard]] Tensor transposed(const Tensor& tensor, const Dims& perm);

/// The tensor repeated to dims by numpy's rule; the tensor itself when it has those dims.
[[nodiscard]] Tensor expand(const Tensor& tensor, const Dims& dims);

}  // namespace sylvite
