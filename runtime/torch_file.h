#pragma once
// Files that hold the text of a captured PyTorch graph, as models: what takes an ONNX file takes those, too.

#include <string>

#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/model_facts.h"

namespace sylvite {

/// By its suffix, .torch.
[[nodiscard]] bool is_torch_file(const std::string& path);

/// Throws ModelError for malformed text.
[[nodiscard]] ModelFacts torch_file_facts(const std::string& text);

/// Options count for what the text has: `dims` gives every symbol's number, and with `random_weights` parameters are
/// constants of random numbers; else they are inputs. Throws what import_torch throws, UsageError for a range.
[[nodiscard]] ImportedModel import_torch_file(const std::string& text, const ImportOptions& options);

}  // namespace sylvite
