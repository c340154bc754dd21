#pragma once
// The ONNX operators: one table row each, grouped by family in ops_*.cpp. A row decomposes one operator
// into core operations.

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/onnx/import_context.h"

namespace sylvite {

struct OnnxOp {
  std::string_view name;
  int since;  ///< the opset from which this row holds, until a row with a higher one
  void (*import)(ImportContext&);
  std::string_view domain = {};
};

/// The domains of ONNX Runtime's own operators, and of classical models.
constexpr std::string_view microsoft = "com.microsoft", onnx_ml = "ai.onnx.ml";

/// An operator that is one operation on its input.
template <Op op>
void unary_op(ImportContext& c) {
  c.output(apply(op, c.input(0)));
}

/// The two inputs of an operator that broadcasts them. Before opset 7 attribute axis says at which axis of the first the
/// second begins; since then, and without it, both end together. Throws ModelError where the second does not fit there.
[[nodiscard]] std::pair<Sym, Sym> broadcast_operands(ImportContext& c);

/// The row for an operator in an opset; nullptr when unknown. Opsets older than all rows get the oldest row.
[[nodiscard]] const OnnxOp* find_onnx_op(std::string_view domain, std::string_view name, int opset);
/// Every row of every family.
[[nodiscard]] std::vector<OnnxOp> onnx_ops();

// The families, each in a file of its own.
[[nodiscard]] std::span<const OnnxOp> onnx_pointwise_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_activation_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_shape_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_gather_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_constant_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_reduction_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_matmul_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_convolution_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_pooling_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_normalization_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_attention_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_recurrent_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_resize_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_signal_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_quantization_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_training_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_control_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_selection_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_region_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_random_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_text_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_ml_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_feature_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_tree_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_linear_model_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_contrib_fused_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_contrib_normalization_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_contrib_attention_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_contrib_grouped_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_contrib_quantized_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_contrib_block_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_contrib_expert_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_contrib_gate_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_contrib_stream_ops();
[[nodiscard]] std::span<const OnnxOp> onnx_contrib_other_ops();

}  // namespace sylvite
