#include "lowering/algorithms/halide_types.h"

#include <bit>
#include <cmath>

#include "base/error.h"
#include "frontend/values/narrow.h"
#include "lowering/algorithms/bf16_rounding.h"
#include "lowering/algorithms/halide_math.h"
#include "sylvite/tensor.h"

namespace sylvite {
namespace {

using Halide::Expr;

Expr word(std::uint32_t value) {
  return Halide::Internal::make_const(Halide::UInt(32), value);
}
Expr word_of(const Expr& value) {
  return Halide::reinterpret<std::uint32_t>(value);
}
Expr float_of(const Expr& bits) {
  return Halide::reinterpret<float>(bits);
}

constexpr std::uint32_t f32_magnitude = 0x7fffffffU;
constexpr std::uint32_t f32_infinity = 0x7f800000U;
constexpr std::uint32_t f32_nan = 0x7fc00000U;
constexpr int f32_mantissa_bits = 23;
constexpr int f32_bias = 127;

/// Infinity of an IEEE type: the exponent's bits. Half of it more is a quiet NaN.
std::uint64_t bits_of_infinity(const Halide::Type& type) {
  if (type.bits() == 16) return 0x7c00;
  return type.bits() == 32 ? f32_infinity : 0x7ff0000000000000U;
}

/// Code of a narrow float -> f32, in integer operations; subnormal codes are small integers, scaled.
Expr narrow_value(const Expr& stored, const NarrowFormat& format) {
  const Expr code = Halide::cast<std::uint32_t>(stored);
  const int mask = format.sign_mask() - 1;
  const Expr magnitude = code & word(static_cast<std::uint32_t>(mask));
  const auto rebias = static_cast<std::uint32_t>(f32_bias - format.bias) << f32_mantissa_bits;
  const Expr normal = (magnitude << (f32_mantissa_bits - format.mantissa_bits)) + word(rebias);
  const auto unit = static_cast<float>(std::ldexp(1.0, format.smallest_exponent() - format.mantissa_bits));
  const Expr subnormal = word_of(Halide::cast<float>(Halide::cast<std::int32_t>(magnitude)) * unit);
  Expr bits = Halide::select(magnitude < word(1U << format.mantissa_bits), subnormal, normal);
  if (format.overflow == NarrowFormat::Overflow::to_infinity)
    bits = Halide::select(magnitude == word(static_cast<std::uint32_t>(format.largest + 1)),
                          word(f32_infinity), bits);
  if (format.has_negative_zero && format.nan <= mask) {
    const int last_number =
        format.overflow == NarrowFormat::Overflow::to_infinity ? format.largest + 1 : format.largest;
    bits = Halide::select(magnitude > word(static_cast<std::uint32_t>(last_number)), word(f32_nan), bits);
  }
  const Expr sign = (code & word(static_cast<std::uint32_t>(format.sign_mask()))) << (31 - format.sign_bit);
  if (format.has_negative_zero) return float_of(bits | sign);
  return float_of(
      Halide::select(code == word(static_cast<std::uint32_t>(format.nan)), word(f32_nan), bits | sign));
}

/// f32 -> code, to nearest even; see NarrowFormat for what becomes of NaN, infinities and what is too large.
Expr narrow_code(const Expr& value, const NarrowFormat& format) {
  const Expr magnitude = word_of(value) & word(f32_magnitude);
  const int shift = f32_mantissa_bits - format.mantissa_bits;
  const Expr odd = (magnitude >> shift) & word(1);
  const auto rebias = static_cast<std::uint32_t>(f32_bias - format.bias) << format.mantissa_bits;
  const Expr rounded = (magnitude + word((1U << (shift - 1)) - 1) + odd) >> shift;
  const auto units = static_cast<float>(std::ldexp(1.0, format.mantissa_bits - format.smallest_exponent()));
  const auto first_normal = static_cast<float>(std::ldexp(1.0, format.smallest_exponent()));
  const Expr small = Halide::min(float_of(magnitude), first_normal) * units;
  const Expr is_small = magnitude < word(std::bit_cast<std::uint32_t>(first_normal));
  const Expr code =
      Halide::select(is_small, Halide::cast<std::uint32_t>(Halide::round(small)), rounded - word(rebias));
  const auto byte = [](int bits) { return word(static_cast<std::uint32_t>(bits)); };
  const Expr sign = (word_of(value) >> (31 - format.sign_bit)) & byte(format.sign_mask());
  const Expr signed_nan = format.has_negative_zero ? byte(format.nan) | sign : byte(format.nan);
  Expr beyond = signed_nan;
  if (format.overflow == NarrowFormat::Overflow::to_infinity) beyond = byte(format.largest + 1) | sign;
  if (format.overflow == NarrowFormat::Overflow::to_largest) beyond = byte(format.largest) | sign;
  const Expr kept =
      format.has_negative_zero ? code | sign : Halide::select(code == word(0), word(0), code | sign);
  // Compared as integers: the code of a number too small to have one wraps around, but is_small takes those.
  const Expr finite = Halide::select(code > byte(format.largest), beyond, kept);
  return Halide::cast<std::uint8_t>(Halide::select(magnitude > word(f32_infinity), signed_nan, finite));
}

/// 2^(code - 127); the smallest is a subnormal number.
Expr e8m0_value(const Expr& stored) {
  const Expr code = Halide::cast<std::uint32_t>(stored);
  const Expr bits =
      Halide::select(code == word(0), word(1U << (f32_mantissa_bits - 1)), code << f32_mantissa_bits);
  return float_of(Halide::select(code == word(0xff), word(f32_nan), bits));
}

/// The exponent, rounded up; NaN for negative numbers and what is too large.
Expr e8m0_code(const Expr& value) {
  const Expr bits = word_of(value);
  const Expr exponent = bits >> f32_mantissa_bits;
  const Expr mantissa = bits & word((1U << f32_mantissa_bits) - 1);
  const Expr exact = Halide::select(exponent == word(0), word(1U << (f32_mantissa_bits - 1)), word(0));
  const Expr code = exponent + Halide::select(mantissa > exact, word(1), word(0));
  const Expr is_negative_zero = bits == word(f32_magnitude + 1);
  return Halide::cast<std::uint8_t>(Halide::select(is_negative_zero, word(0), Halide::min(code, word(0xff))));
}

/// An integer of less than a byte, in a byte: its low bits, with the sign spread where it has one.
Expr low_bits(const Expr& value, DType dtype) {
  const int spare = 8 - dtype_bits(dtype);
  const Expr byte = Halide::cast(Halide::Type(halide_type_of(dtype)), value);
  return (byte << spare) >> spare;
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
    case DType::i4:
    case DType::i2:
      return {halide_type_int, 8};
    case DType::u8:
    case DType::boolean:
    case DType::f8e4m3fn:
    case DType::f8e4m3fnuz:
    case DType::f8e5m2:
    case DType::f8e5m2fnuz:
    case DType::f8e8m0:
    case DType::f4e2m1:
    case DType::u4:
    case DType::u2:
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
  if (dtype == DType::f16 || dtype == DType::bf16 || is_narrow_float(dtype)) return Halide::Float(32);
  return halide_type_of(dtype);
}

Expr from_storage(const Expr& stored, DType dtype) {
  if (dtype == DType::boolean) return stored != Halide::cast<std::uint8_t>(0);
  if (dtype == DType::bf16) {
    const Expr bits = Halide::reinterpret<std::uint16_t>(stored);
    return Halide::reinterpret<float>(Halide::cast<std::uint32_t>(bits) << 16);
  }
  if (dtype == DType::f16) return convert_float(stored, Halide::Float(32));
  if (dtype == DType::f8e8m0) return e8m0_value(stored);
  if (is_narrow_float(dtype)) return narrow_value(stored, narrow_format(dtype));
  return stored;
}

Expr to_storage(const Expr& value, DType dtype) {
  if (dtype == DType::bf16 && value.type().is_bfloat()) return value;
  if (dtype == DType::bf16)
    return Bf16InstructionScope::is_used() ? call_of_bf16_rounding(value) : rounded_to_bf16(value);
  if (dtype == DType::f16) return convert_float(value, Halide::Float(16));
  if (dtype == DType::f8e8m0) return e8m0_code(value);
  if (is_narrow_float(dtype)) return narrow_code(value, narrow_format(dtype));
  if (is_narrow(dtype)) return low_bits(value, dtype);
  return Halide::cast(Halide::Type(halide_type_of(dtype)), value);
}

Expr convert_float(const Expr& value, const Halide::Type& to) {
  const Halide::Type from = value.type();
  if (from == to) return value;
  // F16C, which comes with AVX2, takes infinities and NaN as IEEE does.
  constexpr int f16_and_f32 = 16 + 32;
  if (from.bits() + to.bits() == f16_and_f32 && !DeviceMath::is_used()) return Halide::cast(to, value);
  const Halide::Type from_bits = Halide::UInt(from.bits());
  const Halide::Type to_bits = Halide::UInt(to.bits());
  const Expr bits = Halide::reinterpret(from_bits, value);
  const Expr magnitude = bits & (from_bits.max() >> 1);
  const Expr infinity = Halide::Internal::make_const(from_bits, bits_of_infinity(from));
  const Expr beyond =
      to.bits() > from.bits()
          ? infinity
          : Halide::reinterpret(
                from_bits, Halide::Internal::make_const(from, to.bits() == 16 ? 65520.0 : 0x1.ffffffp127));
  const Expr quiet_nan =
      Halide::Internal::make_const(to_bits, bits_of_infinity(to) | bits_of_infinity(to) >> 1);
  const Expr special = Halide::select(magnitude > infinity, quiet_nan,
                                      Halide::Internal::make_const(to_bits, bits_of_infinity(to)));
  const Expr sign = Halide::cast(to_bits, bits >> (from.bits() - 1)) << (to.bits() - 1);
  const Expr finite = Halide::reinterpret(to_bits, Halide::cast(to, value));
  return Halide::reinterpret(to, Halide::select(magnitude >= beyond, special | sign, finite));
}

bool is_converted_to_store(DType dtype) {
  return dtype == DType::boolean || dtype == DType::f16 || dtype == DType::bf16 || is_narrow(dtype);
}

Expr literal_of(const Tensor& tensor) {
  if (tensor.size() != 1)
    throw InternalError("a literal needs one element, got {}", tensor.type().to_string());
  const DType dtype = tensor.dtype();
  if (dtype == DType::boolean) return Halide::Internal::make_bool(tensor.as_int64(0) != 0);
  if (dtype == DType::f64) return Expr(tensor.as_double(0));
  if (compute_type_of(dtype).is_float()) return Expr(static_cast<float>(tensor.as_double(0)));
  if (compute_type_of(dtype).is_uint()) {
    return Halide::Internal::UIntImm::make(compute_type_of(dtype),
                                           static_cast<std::uint64_t>(tensor.as_int64(0)));
  }
  return Halide::Internal::IntImm::make(compute_type_of(dtype), tensor.as_int64(0));
}

}  // namespace sylvite
