#include "sylvite/tensor.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "frontend/values/recent_blocks.h"
#include "frontend/values/storage.h"

namespace sylvite {
namespace {

std::shared_ptr<void> allocate_zeroed(std::size_t bytes) {
  constexpr std::size_t most = std::size_t{1} << 40;
  std::shared_ptr<void> block = bytes < most ? take_zeroed(bytes) : nullptr;
  if (block == nullptr) throw UnsupportedError("a tensor of {} bytes does not fit in memory", bytes);
  return block;
}

void check_index(std::int64_t i, std::int64_t size) {
  if (i < 0 || i >= size) throw InternalError("element {} of a tensor of {}", i, size);
}

/// Elements of a tensor; throws ModelError when their bytes cannot be counted.
std::int64_t checked_size(DType dtype, const Dims& dims) {
  constexpr std::int64_t small = std::int64_t{1} << 48;  // its bytes can be counted
  const std::int64_t size = checked_product(dims, "tensor");
  if (size > small) (void)checked_product({size, static_cast<std::int64_t>(dtype_size(dtype))}, "tensor");
  return size;
}

}  // namespace

struct Tensor::Later {
  std::function<Tensor()> make;  ///< empty when it was called
  std::once_flag once;
  std::shared_ptr<const void> data;
};

Tensor::Tensor(DType dtype, Dims dims)
    : dtype_(dtype), dims_(std::move(dims)), size_(checked_size(dtype, dims_)) {
  data_ = allocate_zeroed(static_cast<std::size_t>(byte_size()));
}

Tensor::Tensor(DType dtype, Dims dims, std::shared_ptr<const void> keep_alive, const void* data)
    : dtype_(dtype),
      dims_(std::move(dims)),
      size_(checked_size(dtype, dims_)),
      data_(std::move(keep_alive), data) {}

Tensor Tensor::later(DType dtype, Dims dims, std::function<Tensor()> make) {
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.dims_ = std::move(dims);
  tensor.size_ = checked_size(dtype, tensor.dims_);
  tensor.later_ = std::make_shared<Later>();
  tensor.later_->make = std::move(make);
  return tensor;
}

const void* Tensor::made() const {
  std::call_once(later_->once, [&] {
    const Tensor result = later_->make();
    if (result.dtype_ != dtype_ || result.size_ != size_)
      throw InternalError("a tensor of {} {} was made, not of {} {}", result.size_, dtype_name(result.dtype_),
                          size_, dtype_name(dtype_));
    (void)result.data();
    later_->data = result.later_ ? result.later_->data : result.data_;
    later_->make = nullptr;  // and what it holds
  });
  return later_->data.get();
}

void Tensor::assign(const void* bytes, std::size_t count) {
  if (count != static_cast<std::size_t>(byte_size()))
    throw InternalError("{} bytes given for a tensor of {}", count, byte_size());
  if (count > 0) std::memcpy(mutable_data(), bytes, count);
}

void Tensor::check_element_size(std::size_t size) const {
  if (size != dtype_size(dtype_))
    throw InternalError("a tensor of {} viewed as elements of {} bytes", dtype_name(dtype_), size);
}

double Tensor::as_double(std::int64_t i) const {
  check_index(i, size_);
  return with_storage(dtype_, [&](auto zero) {
    return convert_element<double>(static_cast<const decltype(zero)*>(data())[i]);
  });
}

std::int64_t Tensor::as_int64(std::int64_t i) const {
  check_index(i, size_);
  return with_storage(dtype_, [&](auto zero) {
    return convert_element<std::int64_t>(static_cast<const decltype(zero)*>(data())[i]);
  });
}

void Tensor::set_double(std::int64_t i, double value) {
  check_index(i, size_);
  with_storage(dtype_, [&](auto zero) {
    using T = decltype(zero);
    static_cast<T*>(mutable_data())[i] = convert_element<T>(value);
  });
}

void Tensor::set_int64(std::int64_t i, std::int64_t value) {
  check_index(i, size_);
  with_storage(dtype_, [&](auto zero) {
    using T = decltype(zero);
    static_cast<T*>(mutable_data())[i] = convert_element<T>(value);
  });
}

std::vector<std::int64_t> Tensor::to_int64s() const {
  std::vector<std::int64_t> values(static_cast<std::size_t>(size_));
  if (size_ == 0) return values;
  with_storage(dtype_, [&](auto zero) {
    const auto* elements = static_cast<const decltype(zero)*>(data());
    std::transform(elements, elements + size_, values.begin(),
                   [](auto element) { return convert_element<std::int64_t>(element); });
  });
  return values;
}

Tensor Tensor::reshaped(Dims dims) const {
  if (checked_product(dims, "reshaped tensor") != size_)
    throw InternalError("a reshape must keep the element count");
  Tensor result = *this;
  result.dims_ = std::move(dims);
  return result;
}

}  // namespace sylvite
