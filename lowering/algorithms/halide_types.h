#pragma once
// Element types as Halide sees them.

#include <Halide.h>

#include "sylvite/types.h"

namespace sylvite {

/// How elements lie in a halide_buffer_t. A boolean is one byte, u8, that is 0 or 1.
[[nodiscard]] halide_type_t halide_type_of(DType dtype);

/// The type that expressions have: boolean is Bool, f16, bf16 and narrow floats are computed as f32, the
/// others as stored.
[[nodiscard]] Halide::Type compute_type_of(DType dtype);

/// Stored element -> value to compute with, and back: floats round as `cast` says, narrow integers keep their
/// low bits. What has the stored type already stays.
[[nodiscard]] Halide::Expr from_storage(const Halide::Expr& stored, DType dtype);
[[nodiscard]] Halide::Expr to_storage(const Halide::Expr& value, DType dtype);

/// Float to float of another size (16, 32 or 64 bits). The code generator may assume of Halide's own cast
/// that neither side is NaN or infinite; here those go around it.
[[nodiscard]] Halide::Expr convert_float(const Halide::Expr& value, const Halide::Type& to);

/// True when what is computed must be converted before it is stored.
[[nodiscard]] bool is_converted_to_store(DType dtype);

/// Element 0 of a one-element constant, in compute type.
class Tensor;
[[nodiscard]] Halide::Expr literal_of(const Tensor& tensor);

}  // namespace sylvite
