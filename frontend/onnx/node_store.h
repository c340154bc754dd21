#pragma once
// What steps on the host make of their nodes' attributes: made in the first run, and used in all others.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace onnx {
class NodeProto;
}  // namespace onnx

namespace sylvite {

/// Of one model, whose nodes live as long. Thread safe.
class NodeStore {
 public:
  struct Kept {
    std::shared_ptr<const void> value;
    std::set<std::string> attributes;  ///< that it was made of
  };

  /// Nothing where nothing was kept for the node.
  [[nodiscard]] Kept find(const onnx::NodeProto& node) const {
    const std::scoped_lock lock(mutex_);
    const auto found = kept_.find(&node);
    return found == kept_.end() ? Kept() : found->second;
  }
  void keep(const onnx::NodeProto& node, Kept kept) {
    const std::scoped_lock lock(mutex_);
    kept_.emplace(&node, std::move(kept));
  }

 private:
  mutable std::mutex mutex_;
  std::map<const onnx::NodeProto*, Kept> kept_;
};

}  // namespace sylvite
