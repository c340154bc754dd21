#pragma once
// Element types as Halide sees them.

#include <Halide.h>

#include "frontend/types.h"

namespace sylvite {

/// How elements lie in a halide_buffer_t. A boolean is one byte, u8, that is 0 or 1.
[[nodiscard]] halide_type_t halide_type_of(DType dtype);

/// The type that expressions have: boolean is Bool, f16 and bf16 are computed as f32, the others as stored.
[[nodiscard]] Halide::Type compute_type_of(DType dtype);

/// Stored element -> value to compute with, and back: rounds to nearest even for f16 and bf16.
[[nodiscard]] Halide::Expr from_storage(const Halide::Expr& stored, DType dtype);
[[nodiscard]] Halide::Expr to_storage(const Halide::Expr& value, DType dtype);

/// Element 0 of a one-element constant, in compute type.
class Tensor;
[[nodiscard]] Halide::Expr literal_of(const Tensor& tensor);

}  // namespace sylvite
