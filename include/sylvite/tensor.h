#pragma once
// A tensor in memory: dense, row-major, immutable once shared.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "sylvite/types.h"

namespace sylvite {

/// Owns its bytes, or shares them with whatever `keep_alive` holds (a mapped weights file), or makes them
/// when they are first asked for. Copies share. Thread safety: const use is safe; writing through
/// mutable_data is for the one creator, before sharing.
class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Dims dims);  ///< zero-filled, 64-byte aligned
  /// Wraps foreign bytes without copying. REQUIRES data aligned for dtype and checked_product(dims) elements.
  Tensor(DType dtype, Dims dims, std::shared_ptr<const void> keep_alive, const void* data);

  /// `make` is called once, by the first reader, and must return a tensor of this type; what it throws, that
  /// reader gets. For weights: converting them need not wait where only their types are wanted.
  static Tensor later(DType dtype, Dims dims, std::function<Tensor()> make);

  template <typename T>
  static Tensor of(DType dtype, Dims dims, const std::vector<T>& values) {
    Tensor tensor(dtype, std::move(dims));
    tensor.assign(values.data(), values.size() * sizeof(T));
    return tensor;
  }
  static Tensor scalar_f32(float value) { return of<float>(DType::f32, {}, {value}); }
  static Tensor scalar_i64(std::int64_t value) { return of<std::int64_t>(DType::i64, {}, {value}); }
  static Tensor vector_i64(const std::vector<std::int64_t>& values) {
    return of(DType::i64, {static_cast<std::int64_t>(values.size())}, values);
  }

  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const Dims& dims() const { return dims_; }
  [[nodiscard]] TensorType type() const { return make_type(dtype_, dims_); }
  [[nodiscard]] std::int64_t size() const { return size_; }  ///< elements
  [[nodiscard]] std::int64_t byte_size() const {
    return size_ * static_cast<std::int64_t>(dtype_size(dtype_));
  }
  [[nodiscard]] const void* data() const { return later_ ? made() : data_.get(); }
  [[nodiscard]] void* mutable_data() { return const_cast<void*>(data()); }
  /// Equal for tensors that share their bytes, which this does not ask for.
  [[nodiscard]] const void* identity() const { return later_ ? later_.get() : data_.get(); }

  /// REQUIRES sizeof(T) == dtype_size(dtype()); throws InternalError otherwise.
  template <typename T>
  [[nodiscard]] std::span<const T> view() const {
    check_element_size(sizeof(T));
    return {static_cast<const T*>(data()), static_cast<std::size_t>(size_)};
  }
  template <typename T>
  [[nodiscard]] std::span<T> mutable_view() {
    check_element_size(sizeof(T));
    return {static_cast<T*>(mutable_data()), static_cast<std::size_t>(size_)};
  }

  /// Element i converted, whatever the dtype (f16 and bf16 decoded). Slow; for oracles and small constants.
  [[nodiscard]] double as_double(std::int64_t i) const;
  [[nodiscard]] std::int64_t as_int64(std::int64_t i) const;
  void set_double(std::int64_t i, double value);  ///< rounds to the dtype
  void set_int64(std::int64_t i, std::int64_t value);
  [[nodiscard]] std::vector<std::int64_t> to_int64s() const;

  [[nodiscard]] Tensor reshaped(Dims dims) const;  ///< shares bytes; REQUIRES an equal element count

 private:
  struct Later;
  [[nodiscard]] const void* made() const;
  void assign(const void* bytes, std::size_t count);
  void check_element_size(std::size_t size) const;

  DType dtype_ = DType::f32;
  Dims dims_;
  std::int64_t size_ = 0;
  std::shared_ptr<const void> data_;
  std::shared_ptr<Later> later_;  ///< instead of data_
};

}  // namespace sylvite
