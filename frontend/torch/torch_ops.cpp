#include "frontend/torch/torch_ops.h"

#include <map>

namespace sylvite {

const std::vector<TorchOp>& torch_ops() {
  static const std::vector<TorchOp> table = [] {
    std::vector<TorchOp> all;
    for (const auto family : {torch_pointwise_ops, torch_shape_ops, torch_matmul_ops, torch_reduction_ops,
                              torch_normalization_ops, torch_window_ops, torch_resize_ops, torch_gather_ops,
                              torch_creation_ops, torch_random_ops, torch_special_ops, torch_linalg_ops}) {
      const std::span<const TorchOp> rows = family();
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return table;
}

const TorchOp* find_torch_op(std::string_view name) {
  static const std::map<std::string_view, const TorchOp*> by_name = [] {
    std::map<std::string_view, const TorchOp*> index;
    for (const TorchOp& row : torch_ops()) index.emplace(row.name, &row);
    return index;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

}  // namespace sylvite
