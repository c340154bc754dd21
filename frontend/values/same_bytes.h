#pragma once
// Do two tensors hold the same?

#include <cstring>

#include "sylvite/tensor.h"

namespace sylvite {

/// To the bit: zeros of both signs differ, and a NaN is what it is.
[[nodiscard]] inline bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return false;
  return a.data() == b.data() ||
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.byte_size())) == 0;
}

}  // namespace sylvite
