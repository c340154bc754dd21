#pragma once
// Weights in files of the safetensors format: 8 bytes with the length of a JSON header (little endian), the header, which says
// type, shape and place of each tensor by name, then the tensors' bytes. https://github.com/huggingface/safetensors

#include <map>
#include <string>

#include "frontend/onnx/external_data.h"
#include "sylvite/tensor.h"

namespace sylvite {

/// All tensors of a file of the folder, mapped; those that do not lie at a multiple of their element are copied. Throws
/// ModelError for a malformed file, UnsupportedError for an element type that is not served, and what ExternalData::map
/// throws.
[[nodiscard]] std::map<std::string, Tensor> read_safetensors(const ExternalData& folder,
                                                             const std::string& file);

}  // namespace sylvite
