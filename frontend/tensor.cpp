#include "frontend/tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "frontend/half.h"

namespace sylvite {
namespace {

std::shared_ptr<void> allocate_zeroed(std::size_t bytes) {
  constexpr std::size_t alignment = 64;
  const std::size_t padded = std::max((bytes + alignment - 1) / alignment * alignment, alignment);
  void* memory = std::aligned_alloc(alignment, padded);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory, 0, padded);
  return {memory, std::free};
}

/// Calls visit with a value of the C++ type that stores dtype; halves are visited as their bits in a wrapper.
template <typename Visit>
auto with_storage(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f32: return visit(float{});
    case DType::f16: return visit(Half{});
    case DType::bf16: return visit(BFloat16{});
    case DType::f64: return visit(double{});
    case DType::i8: return visit(std::int8_t{});
    case DType::i16: return visit(std::int16_t{});
    case DType::i32: return visit(std::int32_t{});
    case DType::i64: return visit(std::int64_t{});
    case DType::u8: return visit(std::uint8_t{});
    case DType::u16: return visit(std::uint16_t{});
    case DType::u32: return visit(std::uint32_t{});
    case DType::u64: return visit(std::uint64_t{});
    case DType::boolean: return visit(bool{});
  }
  throw InternalError("corrupt element type {}", static_cast<int>(dtype));
}

/// Truncates a double to an integer type; out of range and NaN saturate instead of being undefined.
template <typename T>
T to_storage(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0.0;
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return T{0};
    if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  } else {
    return T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
  }
}

}  // namespace

Tensor::Tensor(DType dtype, Dims dims)
    : dtype_(dtype), dims_(std::move(dims)), size_(checked_product(dims_, "tensor")) {
  data_ = allocate_zeroed(static_cast<std::size_t>(byte_size()));
}

Tensor::Tensor(DType dtype, Dims dims, std::shared_ptr<const void> keep_alive, const void* data)
    : dtype_(dtype),
      dims_(std::move(dims)),
      size_(checked_product(dims_, "tensor")),
      data_(std::move(keep_alive), data) {}

void Tensor::assign(const void* bytes, std::size_t count) {
  if (count != static_cast<std::size_t>(byte_size())) {
    throw InternalError("{} bytes given for a tensor of {}", count, byte_size());
  }
  if (count > 0) std::memcpy(mutable_data(), bytes, count);
}

void Tensor::check_element_size(std::size_t size) const {
  if (size != dtype_size(dtype_)) {
    throw InternalError("a tensor of {} viewed as elements of {} bytes", dtype_name(dtype_), size);
  }
}

double Tensor::as_double(std::int64_t i) const {
  return with_storage(dtype_, [&](auto zero) {
    return static_cast<double>(static_cast<const decltype(zero)*>(data())[i]);
  });
}

std::int64_t Tensor::as_int64(std::int64_t i) const {
  return with_storage(dtype_, [&](auto zero) {
    using T = decltype(zero);
    const T value = static_cast<const T*>(data())[i];
    if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(value);
    return to_storage<std::int64_t>(static_cast<double>(value));
  });
}

void Tensor::set_double(std::int64_t i, double value) {
  with_storage(dtype_, [&](auto zero) {
    using T = decltype(zero);
    static_cast<T*>(mutable_data())[i] = to_storage<T>(value);
  });
}

void Tensor::set_int64(std::int64_t i, std::int64_t value) {
  with_storage(dtype_, [&](auto zero) {
    using T = decltype(zero);
    T& element = static_cast<T*>(mutable_data())[i];
    if constexpr (std::is_same_v<T, bool>) {
      element = value != 0;
    } else if constexpr (std::is_integral_v<T>) {
      element = static_cast<T>(value);
    } else {
      element = to_storage<T>(static_cast<double>(value));
    }
  });
}

std::vector<std::int64_t> Tensor::to_int64s() const {
  std::vector<std::int64_t> values;
  values.reserve(static_cast<std::size_t>(size_));
  for (std::int64_t i = 0; i < size_; ++i) values.push_back(as_int64(i));
  return values;
}

Tensor Tensor::reshaped(Dims dims) const {
  if (checked_product(dims, "reshaped tensor") != size_) throw InternalError("a reshape must keep the element count");
  Tensor result = *this;
  result.dims_ = std::move(dims);
  return result;
}

}  // namespace sylvite
