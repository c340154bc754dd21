#pragma once
// Operators that only move elements, on tensors of strings: they move the places of texts in a list.

#include "frontend/onnx/graph_import.h"
#include "frontend/onnx/ops.h"

namespace sylvite {

/// Whether the node is of such an operator and reads strings.
[[nodiscard]] bool moves_strings(OnnxGraphImporter& importer, OnnxScope& scope, const onnx::NodeProto& node);

/// REQUIRES moves_strings. Imports the node with numbers in the strings' stead, and binds its outputs.
void import_moved_strings(OnnxGraphImporter& importer, OnnxScope& scope, const OnnxFrame& frame,
                          const onnx::NodeProto& node, const OnnxOp& op, int opset);

}  // namespace sylvite
