#pragma once
// What steps on the host make of their nodes' attributes, and the order of the nodes of subgraphs: made in the first run, and used
// in all others.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

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

  using Order = std::vector<const onnx::NodeProto*>;
  /// The order of the nodes of a list, which is told by its address.
  [[nodiscard]] const Order& order(const void* nodes, const std::function<Order()>& make) {
    const std::scoped_lock lock(mutex_);
    const auto found = orders_.find(nodes);
    return found == orders_.end() ? orders_.emplace(nodes, make()).first->second : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<const onnx::NodeProto*, Kept> kept_;
  std::unordered_map<const void*, Order> orders_;
};

}  // namespace sylvite
