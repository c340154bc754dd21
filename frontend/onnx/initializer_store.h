#pragma once
// What the imports of one model have in common: weights, each of which is read once, and an import that was made to see whether
// the model allows it, which need not be made again.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "frontend/onnx/imported_model.h"
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

  /// For the next import.
  void keep(const Sizes& sizes, ImportedModel imported) {
    const std::scoped_lock lock(mutex_);
    kept_.emplace(sizes, std::move(imported));
  }
  /// What was kept for these sizes; what was kept for others is gone as well, since it may hold large constants.
  [[nodiscard]] std::optional<ImportedModel> take(const Sizes& sizes) {
    const std::scoped_lock lock(mutex_);
    std::optional<std::pair<Sizes, ImportedModel>> kept = std::exchange(kept_, std::nullopt);
    if (!kept || kept->first != sizes) return std::nullopt;
    return std::move(kept->second);
  }

 private:
  std::mutex mutex_;
  std::optional<std::pair<Sizes, ImportedModel>> kept_;
  std::map<const onnx::TensorProto*, Tensor> tensors_;
};

}  // namespace sylvite
