#pragma once
// Weights of a model that is imported several times: each is read once.

#include <functional>
#include <map>
#include <mutex>

#include "sylvite/tensor.h"

namespace onnx {
class TensorProto;
}  // namespace onnx

namespace sylvite {

/// Thread safe.
class InitializerStore {
 public:
  /// What `read` returned for this tensor when it was first asked for. What it throws, the caller gets.
  [[nodiscard]] Tensor get(const onnx::TensorProto& proto, const std::function<Tensor()>& read) {
    const std::scoped_lock lock(mutex_);
    const auto found = tensors_.find(&proto);
    return found != tensors_.end() ? found->second : tensors_.emplace(&proto, read()).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<const onnx::TensorProto*, Tensor> tensors_;
};

}  // namespace sylvite
