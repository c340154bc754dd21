#pragma once
// The ATen operations: one table row each, grouped by family in ops_*.cpp. A row becomes core operations.

#include <span>
#include <string_view>
#include <vector>

#include "frontend/torch/torch_context.h"

namespace sylvite {

struct TorchOp {
  std::string_view name;    ///< e.g. aten.add.Tensor
  std::string_view schema;  ///< names of its arguments, in order
  void (*import)(TorchContext&);
};

/// nullptr when unknown.
[[nodiscard]] const TorchOp* find_torch_op(std::string_view name);
/// Every row of every family.
[[nodiscard]] const std::vector<TorchOp>& torch_ops();

// The families, each in a file of its own.
[[nodiscard]] std::span<const TorchOp> torch_pointwise_ops();
[[nodiscard]] std::span<const TorchOp> torch_shape_ops();
[[nodiscard]] std::span<const TorchOp> torch_matmul_ops();
[[nodiscard]] std::span<const TorchOp> torch_reduction_ops();
[[nodiscard]] std::span<const TorchOp> torch_normalization_ops();
[[nodiscard]] std::span<const TorchOp> torch_window_ops();
[[nodiscard]] std::span<const TorchOp> torch_resize_ops();
[[nodiscard]] std::span<const TorchOp> torch_gather_ops();
[[nodiscard]] std::span<const TorchOp> torch_creation_ops();
[[nodiscard]] std::span<const TorchOp> torch_random_ops();
[[nodiscard]] std::span<const TorchOp> torch_special_ops();
[[nodiscard]] std::span<const TorchOp> torch_linalg_ops();

}  // namespace sylvite
