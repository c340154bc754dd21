#pragma once
// ONNX TensorProto -> Tensor, and back. Every TensorProto of a model comes through here: initializers, attributes,
// sparse parts.

#include <memory>
#include <string>

#include "frontend/onnx/external_data.h"
#include "sylvite/host_value.h"
#include "sylvite/tensor.h"

namespace onnx {
class GraphProto;
class SparseTensorProto;
class TensorProto;
}  // namespace onnx

namespace sylvite {

/// Throws UnsupportedError naming the type (strings, complex numbers, ...).
[[nodiscard]] DType dtype_of_onnx(int data_type);
[[nodiscard]] int onnx_of_dtype(DType dtype);  ///< the inverse

/// Decodes a tensor whose data lies in the message or in a file under `external`. Throws ModelError naming
/// the tensor when dims and data disagree; nothing is allocated before that is checked. Large raw data is
/// shared with `owner`, the message that holds `proto`, when it is given.
[[nodiscard]] Tensor decode_tensor(const onnx::TensorProto& proto, const ExternalData& external,
                                   const std::shared_ptr<const void>& owner = nullptr);

/// A tensor of the mapped bytes: shared where they lie at a multiple of the element, else copied. Bytes of booleans become 0
/// and 1. REQUIRES as many bytes as the dims need.
[[nodiscard]] Tensor tensor_of_bytes(DType dtype, const Dims& dims, const ExternalData::Bytes& bytes);

/// The texts of `list` at `places`. Throws ModelError where one is outside.
[[nodiscard]] StringTensor chosen_strings(const std::vector<std::string>& list, const Tensor& places);

/// As decode_tensor for tensors of strings. Throws ModelError when the tensor holds something else.
[[nodiscard]] StringTensor decode_strings(const onnx::TensorProto& proto);

/// The message that decode_tensor and decode_strings read.
[[nodiscard]] onnx::TensorProto encode_tensor(const Tensor& tensor, const std::string& name);
[[nodiscard]] onnx::TensorProto encode_strings(const StringTensor& strings, const std::string& name);

/// The dense equivalent, zero where no value is given. Throws UnsupportedError above 2^32 elements.
[[nodiscard]] Tensor decode_sparse_tensor(const onnx::SparseTensorProto& proto, const ExternalData& external);

/// The graph's initializer of that name, if it is one of numbers; else nullptr.
[[nodiscard]] const onnx::TensorProto* find_initializer(const onnx::GraphProto& graph,
                                                        const std::string& name);

/// Whether the tensor says its data is outside, but names no file, or one that does not exist.
[[nodiscard]] bool is_data_absent(const onnx::TensorProto& proto, const ExternalData& external);

/// Where such data should be, for messages.
[[nodiscard]] std::string external_file_name(const onnx::TensorProto& proto, const ExternalData& external);

}  // namespace sylvite
