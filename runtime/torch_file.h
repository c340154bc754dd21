#pragma once
// Files that hold the text of a captured PyTorch graph, as models: what takes an ONNX file takes those, too.

#include <map>
#include <string>

#include "frontend/onnx/imported_model.h"
#include "frontend/onnx/model_facts.h"
#include "frontend/onnx/model_sizes.h"
#include "frontend/ops/gradient_kernels.h"

namespace sylvite {

/// By its suffix, .torch.
[[nodiscard]] bool is_torch_file(const std::string& path);

/// The text, and values of its parameters: those of the .safetensors file with the same name beside it, if there is one, by
/// parameter.
struct TorchFile {
  std::string text;
  std::map<std::string, Tensor> weights;
};

/// Throws IoError, what read_safetensors throws, and ModelError where that file lacks a parameter of the text.
[[nodiscard]] TorchFile read_torch_file(const std::string& path, bool follow_links);

/// Throws ModelError for malformed text.
[[nodiscard]] ModelFacts torch_file_facts(const TorchFile& file);

/// Of the inputs that a run is given: `options.dims` fixes symbols or gives ranges. Throws what read_model_sizes throws, and
/// UsageError for a symbol that no input tells and that has no number.
[[nodiscard]] ModelSizes torch_file_sizes(const TorchFile& file, const ImportOptions& options);

/// The graph at `sizes`, which are of `model`: torch_file_sizes with the same options. Parameters without a value are inputs; with
/// `options.random_weights` they are constants of random numbers. `gradients`: see TorchImportOptions. Throws what
/// import_torch throws.
[[nodiscard]] ImportedModel import_torch_file(const TorchFile& file, const ImportOptions& options,
                                              const ModelSizes& model, const Sizes& sizes,
                                              GradientKernels gradients = GradientKernels::none);

}  // namespace sylvite
