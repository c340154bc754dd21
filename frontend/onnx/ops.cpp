#include "frontend/onnx/ops.h"

#include <map>

namespace sylvite {
namespace {

using OpKey = std::pair<std::string_view, std::string_view>;
using OpIndex = std::map<OpKey, std::map<int, OnnxOp>>;

const OpIndex& op_index() {
  static const OpIndex index = [] {
    OpIndex result;
    for (const OnnxOp& op : onnx_ops()) result[{op.domain, op.name}][op.since] = op;
    return result;
  }();
  return index;
}

}  // namespace

std::vector<OnnxOp> onnx_ops() {
  std::vector<OnnxOp> rows;
  for (const auto family : {onnx_pointwise_ops(),
                            onnx_activation_ops(),
                            onnx_shape_ops(),
                            onnx_gather_ops(),
                            onnx_constant_ops(),
                            onnx_reduction_ops(),
                            onnx_matmul_ops(),
                            onnx_convolution_ops(),
                            onnx_pooling_ops(),
                            onnx_normalization_ops(),
                            onnx_attention_ops(),
                            onnx_recurrent_ops(),
                            onnx_resize_ops(),
                            onnx_signal_ops(),
                            onnx_quantization_ops(),
                            onnx_training_ops(),
                            onnx_control_ops(),
                            onnx_selection_ops(),
                            onnx_region_ops(),
                            onnx_random_ops(),
                            onnx_text_ops(),
                            onnx_ml_ops(),
                            onnx_feature_ops(),
                            onnx_tree_ops(),
                            onnx_linear_model_ops(),
                            onnx_contrib_fused_ops(),
                            onnx_contrib_normalization_ops(),
                            onnx_contrib_attention_ops(),
                            onnx_contrib_grouped_ops(),
                            onnx_contrib_quantized_ops(),
                            onnx_contrib_block_ops(),
                            onnx_contrib_expert_ops(),
                            onnx_contrib_gate_ops(),
                            onnx_contrib_stream_ops(),
                            onnx_contrib_other_ops()}) {
    rows.insert(rows.end(), family.begin(), family.end());
  }
  return rows;
}

const OnnxOp* find_onnx_op(std::string_view domain, std::string_view name, int opset) {
  const auto found = op_index().find({domain, name});
  if (found == op_index().end()) return nullptr;
  const std::map<int, OnnxOp>& versions = found->second;
  auto row = versions.upper_bound(opset);
  if (row != versions.begin()) --row;
  return &row->second;
}

}  // namespace sylvite
