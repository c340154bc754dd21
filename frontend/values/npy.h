#pragma once
// NumPy's .npy format in memory: versions 1.0 to 3.0, little- or big-endian, C or Fortran order. bf16 is
// stored as NumPy's ml_dtypes package stores it: two opaque bytes, '<V2'.

#include <string>
#include <string_view>

#include "sylvite/tensor.h"

namespace sylvite {

/// Throws ModelError when the bytes are malformed or too few or too many, and UnsupportedError for other
/// element types (structures, strings, complex numbers); both start with `what`. Nothing is allocated before
/// sizes are checked.
[[nodiscard]] Tensor tensor_from_npy(std::string_view bytes, const std::string& what);

[[nodiscard]] std::string tensor_to_npy(const Tensor& tensor);

}  // namespace sylvite
