#pragma once
// A tensor with memory of its own.

#include <cstring>

#include "sylvite/tensor.h"

namespace sylvite {

/// Of the same elements; nothing is asked of the alignment of what is copied.
[[nodiscard]] inline Tensor copy_of(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.dims());
  if (tensor.byte_size() > 0)
    std::memcpy(copy.mutable_data(), tensor.data(), static_cast<std::size_t>(tensor.byte_size()));
  return copy;
}

}  // namespace sylvite
