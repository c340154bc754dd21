#include "lowering/halide_types.h"

#include "base/error.h"
#include "frontend/tensor.h"

namespace sylvite {
namespace {

using Halide::Expr;

/// f32 -> bf16 bits, to nearest even; NaN stays NaN. Integer operations only, so that vectors stay vectors.
Expr bfloat16_bits(const Expr& value) {
  const Expr word = Halide::reinterpret<std::uint32_t>(value);
  const Expr is_nan =
      (word & Halide::cast<std::uint32_t>(0x7fffffff)) > Halide::cast<std::uint32_t>(0x7f800000);
  const Expr rounded = (word + Halide::cast<std::uint32_t>(0x7fff) + ((word >> 16) & 1)) >> 16;
  return Halide::cast<std::uint16_t>(Halide::select(is_nan, (word >> 16) | 0x40, rounded));
}

}  // namespace

halide_type_t halide_type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return {halide_type_float, 32};
    case DType::f16:
      return {halide_type_float, 16};
    case DType::bf16:
      return {halide_type_bfloat, 16};
    case DType::f64:
      return {halide_type_float, 64};
    case DType::i8:
      return {halide_type_int, 8};
    case DType::i16:
      return {halide_type_int, 16};
    case DType::i32:
      return {halide_type_int, 32};
    case DType::i64:
      return {halide_type_int, 64};
    case DType::u8:
    case DType::boolean:
      return {halide_type_uint, 8};
    case DType::u16:
      return {halide_type_uint, 16};
    case DType::u32:
      return {halide_type_uint, 32};
    case DType::u64:
      return {halide_type_uint, 64};
  }
  throw InternalError("dtype {} has no Halide type", static_cast<int>(dtype));
}

Halide::Type compute_type_of(DType dtype) {
  if (dtype == DType::boolean) return Halide::Bool();
  if (dtype == DType::f16 || dtype == DType::bf16) return Halide::Float(32);
  return halide_type_of(dtype);
}

Expr from_storage(const Expr& stored, DType dtype) {
  if (dtype == DType::boolean) return stored != Halide::cast<std::uint8_t>(0);
  if (dtype == DType::bf16) {
    const Expr bits = Halide::reinterpret<std::uint16_t>(stored);
    return Halide::reinterpret<float>(Halide::cast<std::uint32_t>(bits) << 16);
  }
  if (dtype == DType::f16) return Halide::cast<float>(stored);
  return stored;
}

Expr to_storage(const Expr& value, DType dtype) {
  if (dtype == DType::bf16) return Halide::reinterpret(Halide::BFloat(16), bfloat16_bits(value));
  return Halide::cast(Halide::Type(halide_type_of(dtype)), value);
}

Expr literal_of(const Tensor& tensor) {
  if (tensor.size() != 1)
    throw InternalError("a literal needs one element, got {}", tensor.type().to_string());
  const DType dtype = tensor.dtype();
  if (dtype == DType::boolean) return Halide::Internal::make_bool(tensor.as_int64(0) != 0);
  if (dtype == DType::f64) return Expr(tensor.as_double(0));
  if (is_float(dtype)) return Expr(static_cast<float>(tensor.as_double(0)));
  if (is_unsigned_integer(dtype)) {
    return Halide::Internal::UIntImm::make(compute_type_of(dtype),
                                           static_cast<std::uint64_t>(tensor.as_int64(0)));
  }
  return Halide::Internal::IntImm::make(compute_type_of(dtype), tensor.as_int64(0));
}

}  // namespace sylvite
