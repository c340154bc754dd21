#pragma once
// Tensors in files: NumPy .npy (version 1.0 to 3.0, C order) and ONNX TensorProto .pb.

#include <string>

#include "sylvite/tensor.h"

namespace sylvite {

/// By file extension. Throws IoError or ModelError naming the file.
[[nodiscard]] Tensor read_tensor(const std::string& path);
/// Written to a temporary name and renamed, so a reader never sees half a file.
void write_tensor(const std::string& path, const Tensor& tensor, const std::string& name);

}  // namespace sylvite
