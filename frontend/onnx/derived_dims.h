#pragma once
// Dims that a model's file leaves open and that follow from something: from another dim, as torch's exporter writes it
// (2*tokens - 1), or from weights.

#include <vector>

#include "frontend/onnx/model_sizes.h"
#include "sylvite/import.h"

namespace onnx {
class GraphProto;
}  // namespace onnx

namespace sylvite {

/// Dims that meet weights are as these have them: channels of images ahead of a convolution, features of rows ahead of a product.
/// Those that `options` give a range or a shape for stay open.
void pin_dims(const onnx::GraphProto& graph, std::vector<DeclaredInput>& inputs,
              const ImportOptions& options);

/// Names that are a positive multiple of another input's dim, and a number, become that dim's. Those that `options` give a range for
/// stay dims of their own.
void derive_dims(std::vector<DeclaredInput>& inputs, const ImportOptions& options);

}  // namespace sylvite
