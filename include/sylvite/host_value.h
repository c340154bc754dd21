#pragma once
// What a model may take and give besides tensors of numbers: strings, sequences, optionals. These live on the
// host only; kernels never see them.

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sylvite/tensor.h"

namespace sylvite {

/// Row-major. REQUIRES as many values as the product of dims.
struct StringTensor {
  Dims dims;
  std::vector<std::string> values;
  bool operator==(const StringTensor&) const = default;
};

/// A value at the boundary of a model; cheap to copy. An optional without a value is absent, one with a value
/// is that value.
class HostValue {
 public:
  using Sequence = std::vector<HostValue>;

  HostValue() = default;
  HostValue(Tensor tensor)
      : value_(std::move(tensor)) {}  // NOLINT(google-explicit-constructor): a tensor is one
  explicit HostValue(StringTensor strings)
      : value_(std::make_shared<const StringTensor>(std::move(strings))) {}
  explicit HostValue(Sequence values) : value_(std::make_shared<const Sequence>(std::move(values))) {}

  [[nodiscard]] bool is_absent() const { return std::holds_alternative<std::monostate>(value_); }
  [[nodiscard]] bool is_tensor() const { return std::holds_alternative<Tensor>(value_); }
  [[nodiscard]] bool is_strings() const { return std::holds_alternative<Strings>(value_); }
  [[nodiscard]] bool is_sequence() const { return std::holds_alternative<Items>(value_); }

  /// These throw InputError when the value is of another kind.
  [[nodiscard]] const Tensor& tensor() const { return get<Tensor>("a tensor of numbers"); }
  [[nodiscard]] const StringTensor& strings() const { return *get<Strings>("a tensor of strings"); }
  [[nodiscard]] const Sequence& sequence() const { return *get<Items>("a sequence"); }
  /// For messages: f32[2,3], "strings[4]", "a sequence of 2", "nothing".
  [[nodiscard]] std::string describe() const;

 private:
  using Strings = std::shared_ptr<const StringTensor>;
  using Items = std::shared_ptr<const Sequence>;

  [[noreturn]] void refuse(std::string_view wanted) const;

  template <typename T>
  const T& get(std::string_view wanted) const {
    if (const T* held = std::get_if<T>(&value_)) return *held;
    refuse(wanted);
  }

  std::variant<std::monostate, Tensor, Strings, Items> value_;
};

}  // namespace sylvite
