#pragma once
// Operators that only move elements, on tensors of strings: they move the places of texts in a list.

#include "frontend/onnx/graph_import.h"
#include "frontend/onnx/ops.h"

namespace sylvite {

/// Do its results hold elements of its inputs and nothing else?
[[nodiscard]] bool moves_elements(const onnx::NodeProto& node);
/// Do its results say how many elements there are?
[[nodiscard]] bool measures_elements(const onnx::NodeProto& node);
/// Whether the node is of such an operator and reads strings.
[[nodiscard]] bool moves_strings(OnnxGraphImporter& importer, OnnxScope& scope, const onnx::NodeProto& node);

/// REQUIRES moves_strings. Imports the node with numbers in the strings' stead, and binds its outputs.
void import_moved_strings(OnnxGraphImporter& importer, OnnxScope& scope, const OnnxFrame& frame,
                          const onnx::NodeProto& node, const OnnxOp& op, int opset);

}  // namespace sylvite
