#pragma once
// Values in files: NumPy .npy (version 1.0 to 3.0, C order) for tensors of numbers, and ONNX's messages (.pb) for all:
// TensorProto, SequenceProto and OptionalProto.

#include <cstdint>
#include <string>

#include "sylvite/host_value.h"
#include "sylvite/tensor.h"

namespace sylvite {

/// What a model declares a value to be, and so which message a .pb file of it holds.
enum class ValueKind : std::uint8_t {
  tensor,    ///< of numbers
  strings,   ///< a TensorProto, too
  sequence,  ///< of any
  optional,  ///< with a value of any other kind, or without
};

/// By file extension. Throws IoError, ModelError or UnsupportedError naming the file.
[[nodiscard]] Tensor read_tensor(const std::string& path);
/// Written to a temporary name and renamed, so a reader never sees half a file.
void write_tensor(const std::string& path, const Tensor& tensor, const std::string& name);

/// The same for every value; the files do not say their kind. Tensors of numbers and of strings may stand for each
/// other.
[[nodiscard]] HostValue read_value(const std::string& path, ValueKind kind);
/// Throws IoError for a .npy file of anything but a tensor of numbers.
void write_value(const std::string& path, const HostValue& value, ValueKind kind, const std::string& name);

}  // namespace sylvite
