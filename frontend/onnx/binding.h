#pragma once
// What the names of ONNX graphs stand for while a model is imported.

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "sylvite/graph.h"
#include "sylvite/host_value.h"

namespace onnx {
class SparseTensorProto;
class TensorProto;
}  // namespace onnx

namespace sylvite {

/// What a name of an ONNX graph stands for: at most one of these is set, but for `texts`.
struct OnnxBinding {
  ValueId value = no_value;
  const onnx::TensorProto* initializer = nullptr;                  ///< becomes a value when first read
  const onnx::SparseTensorProto* sparse = nullptr;                 ///< likewise
  std::shared_ptr<const std::vector<ValueId>> sequence = nullptr;  ///< set for sequences
  std::shared_ptr<const StringTensor> strings = nullptr;           ///< set for known tensors of strings
  /// Set with `value` for tensors of strings that a run chooses: each element is the place of its text here.
  std::shared_ptr<const std::vector<std::string>> texts = nullptr;
  bool is_deferred = false;  ///< known only when the model runs

  [[nodiscard]] static OnnxBinding of(ValueId id) {
    OnnxBinding binding;
    binding.value = id;
    return binding;
  }
  [[nodiscard]] static OnnxBinding deferred() {
    OnnxBinding binding;
    binding.is_deferred = true;
    return binding;
  }
  [[nodiscard]] bool is_tensor() const { return value != no_value && texts == nullptr; }  ///< of numbers
  /// An optional input that a function call leaves out, or an optional without a value.
  [[nodiscard]] bool is_absent() const {
    return value == no_value && initializer == nullptr && sparse == nullptr && sequence == nullptr &&
           strings == nullptr && !is_deferred;
  }
};

/// The names of one graph; names of the enclosing graphs are visible unless hidden.
class OnnxScope {
 public:
  explicit OnnxScope(OnnxScope* parent = nullptr) : parent_(parent) {}
  [[nodiscard]] OnnxBinding* find(const std::string& name);  ///< nullptr when nobody defines it
  void bind(const std::string& name, OnnxBinding binding) { names_[name] = std::move(binding); }
  [[nodiscard]] bool is_main() const { return parent_ == nullptr && !is_function_; }
  [[nodiscard]] static OnnxScope of_function();

 private:
  OnnxScope* parent_;
  bool is_function_ = false;
  std::unordered_map<std::string, OnnxBinding> names_;
};

}  // namespace sylvite
