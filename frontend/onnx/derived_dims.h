#pragma once
// Dims that a model's file names by an expression of another dim, as torch's exporter writes what follows from it: 2*tokens - 1.

#include <vector>

#include "frontend/onnx/model_sizes.h"
#include "sylvite/import.h"

namespace sylvite {

/// Names that are a positive multiple of another input's dim, and a number, become that dim's. Those that `options` give a range for
/// stay dims of their own.
void derive_dims(std::vector<DeclaredInput>& inputs, const ImportOptions& options);

}  // namespace sylvite
