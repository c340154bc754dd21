#pragma once
// The C++ type behind each element type, and conversions that round once. For code that loops over tensors.

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "frontend/values/half.h"
#include "frontend/values/narrow.h"
#include "sylvite/tensor.h"

namespace sylvite {

/// Types that wrap the bits of a float; those that hold an integer in some bits of a byte.
template <typename T>
inline constexpr bool is_float_wrapper = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <DType dtype>
inline constexpr bool is_float_wrapper<NarrowFloat<dtype>> = true;
template <typename T>
inline constexpr bool is_integer_wrapper = false;
template <int width, bool is_signed>
inline constexpr bool is_integer_wrapper<NarrowInteger<width, is_signed>> = true;

/// Calls visit with a zero of the C++ type that stores dtype; 16-bit floats and narrow types come in their
/// wrapper.
template <typename Visit>
decltype(auto) with_storage(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f32:
      return visit(float{});
    case DType::f16:
      return visit(Half{});
    case DType::bf16:
      return visit(BFloat16{});
    case DType::f64:
      return visit(double{});
    case DType::i8:
      return visit(std::int8_t{});
    case DType::i16:
      return visit(std::int16_t{});
    case DType::i32:
      return visit(std::int32_t{});
    case DType::i64:
      return visit(std::int64_t{});
    case DType::u8:
      return visit(std::uint8_t{});
    case DType::u16:
      return visit(std::uint16_t{});
    case DType::u32:
      return visit(std::uint32_t{});
    case DType::u64:
      return visit(std::uint64_t{});
    case DType::boolean:
      return visit(bool{});
    case DType::f8e4m3fn:
      return visit(NarrowFloat<DType::f8e4m3fn>{});
    case DType::f8e4m3fnuz:
      return visit(NarrowFloat<DType::f8e4m3fnuz>{});
    case DType::f8e5m2:
      return visit(NarrowFloat<DType::f8e5m2>{});
    case DType::f8e5m2fnuz:
      return visit(NarrowFloat<DType::f8e5m2fnuz>{});
    case DType::f8e8m0:
      return visit(NarrowFloat<DType::f8e8m0>{});
    case DType::f4e2m1:
      return visit(NarrowFloat<DType::f4e2m1>{});
    case DType::i4:
      return visit(NarrowInteger<4, true>{});
    case DType::u4:
      return visit(NarrowInteger<4, false>{});
    case DType::i2:
      return visit(NarrowInteger<2, true>{});
    case DType::u2:
      return visit(NarrowInteger<2, false>{});
  }
  throw InternalError("corrupt element type {}", static_cast<int>(dtype));
}

/// Calls visit with a zero of an unsigned integer of so many bytes, for code that only moves elements.
template <typename Visit>
decltype(auto) with_bits(std::size_t element_size, Visit&& visit) {
  switch (element_size) {
    case 1:
      return visit(std::uint8_t{});
    case 2:
      return visit(std::uint16_t{});
    case 4:
      return visit(std::uint32_t{});
    case 8:
      return visit(std::uint64_t{});
    default:
      throw InternalError("elements of {} bytes", element_size);
  }
}

/// Converts between storage types and the arithmetic types double, int64_t and uint64_t. Floats round to
/// nearest even; float to integer truncates and saturates, NaN gives 0; integer to integer wraps; to boolean
/// is x != 0.
template <typename To, typename From>
To convert_element(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_float_wrapper<From>) {
    return convert_element<To>(static_cast<float>(value));
  } else if constexpr (is_integer_wrapper<From>) {
    return convert_element<To>(static_cast<std::int64_t>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{};
  } else if constexpr (is_float_wrapper<To>) {
    return To(static_cast<double>(value));
  } else if constexpr (is_integer_wrapper<To>) {
    return To(convert_element<std::int64_t>(value));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    using Limits = std::numeric_limits<To>;
    if (std::isnan(value)) return To{0};
    if (static_cast<double>(value) <= static_cast<double>(Limits::min())) return Limits::min();
    if (static_cast<double>(value) >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

/// All elements of a tensor in an arithmetic type (double, std::int64_t or std::uint64_t), and back.
template <typename C>
std::vector<C> decode(const Tensor& tensor) {
  std::vector<C> values(static_cast<std::size_t>(tensor.size()));
  with_storage(tensor.dtype(), [&](auto zero) {
    const auto* source = static_cast<const decltype(zero)*>(tensor.data());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = convert_element<C>(source[i]);
  });
  return values;
}

/// REQUIRES values.size() == checked_product(dims).
template <typename C>
Tensor encode(DType dtype, const Dims& dims, const std::vector<C>& values) {
  Tensor tensor(dtype, dims);
  if (values.size() != static_cast<std::size_t>(tensor.size()))
    throw InternalError("{} values for {}", values.size(), tensor.type().to_string());
  with_storage(dtype, [&](auto zero) {
    using T = decltype(zero);
    auto* target = static_cast<T*>(tensor.mutable_data());
    for (std::size_t i = 0; i < values.size(); ++i) target[i] = convert_element<T>(C{values[i]});
  });
  return tensor;
}

/// Calls visit with a zero of the type in which dtype's arithmetic is done: double, std::int64_t or
/// std::uint64_t.
template <typename Visit>
decltype(auto) with_arithmetic(DType dtype, Visit&& visit) {
  if (is_float(dtype) || is_narrow_float(dtype)) return visit(double{});
  if (is_signed_integer(dtype) || dtype == DType::i4 || dtype == DType::i2) return visit(std::int64_t{});
  return visit(std::uint64_t{});
}

}  // namespace sylvite
