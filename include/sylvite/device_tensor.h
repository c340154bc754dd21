#pragma once
// Tensors in a GPU's memory, as other libraries hold them.

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "frontend/values/types.h"

namespace sylvite {

/// A dense row-major tensor in device memory, at a multiple of 16 bytes. Not owned.
struct DeviceTensor {
  TensorType type;
  void* data = nullptr;
};

/// The element type that DLPack's codes name (its DLDataType): kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4,
/// kDLBool 6. Throws InputError for others.
[[nodiscard]] DType dtype_of_dlpack(int code, int bits, int lanes);

/// A view of a DLTensor of DLPack (https://dmlc.github.io/dlpack): any struct with its members, so that no
/// version of its header is needed here. Throws InputError unless it is dense and in CUDA memory.
template <typename DlTensor>
[[nodiscard]] DeviceTensor from_dlpack(const DlTensor& tensor) {
  constexpr int cuda = 2;
  constexpr int cuda_managed = 13;
  const int device = static_cast<int>(tensor.device.device_type);
  if (device != cuda && device != cuda_managed)
    throw InputError("a DLPack tensor of device type {}, expected CUDA memory ({})", device, cuda);
  Dims dims(tensor.shape, tensor.shape + tensor.ndim);
  std::int64_t stride = 1;
  for (int i = tensor.ndim; i-- > 0; stride *= dims[static_cast<std::size_t>(i)]) {
    const bool matters = dims[static_cast<std::size_t>(i)] > 1;
    if (tensor.strides != nullptr && matters && tensor.strides[i] != stride)
      throw InputError("a DLPack tensor with stride {} in dim {}, expected {}: make it contiguous",
                       tensor.strides[i], i, stride);
  }
  const DType dtype = dtype_of_dlpack(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
  return {make_type(dtype, dims), static_cast<char*>(tensor.data) + tensor.byte_offset};
}

}  // namespace sylvite
