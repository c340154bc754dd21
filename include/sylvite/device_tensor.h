#pragma once
// Tensors in a GPU's memory, as other libraries hold them.

#include <cstdint>

#include "sylvite/types.h"

namespace sylvite {

/// A dense row-major tensor in device memory, at a multiple of 16 bytes. Not owned.
struct DeviceTensor {
  TensorType type;
  void* data = nullptr;
};

/// The element type that DLPack's codes name (its DLDataType): kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4,
/// kDLBool 6. Throws InputError for others.
[[nodiscard]] DType dtype_of_dlpack(int code, int bits, int lanes);

/// What a DLTensor of DLPack says of where its elements lie.
struct DlPackView {
  void* data = nullptr;
  std::uint64_t byte_offset = 0;
  int device_type = 0;
  int rank = 0;
  const std::int64_t* shape = nullptr;
  const std::int64_t* strides = nullptr;  ///< in elements; nullptr is dense
};
/// Throws InputError unless the view is dense and in CUDA memory.
[[nodiscard]] DeviceTensor device_tensor(DType dtype, const DlPackView& view);

/// A view of a DLTensor of DLPack (https://dmlc.github.io/dlpack): any struct with its members, so that no
/// version of its header is needed here. Throws InputError as the two above.
template <typename DlTensor>
[[nodiscard]] DeviceTensor from_dlpack(const DlTensor& tensor) {
  const DType dtype = dtype_of_dlpack(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
  return device_tensor(dtype, {tensor.data, tensor.byte_offset, static_cast<int>(tensor.device.device_type),
                               tensor.ndim, tensor.shape, tensor.strides});
}

}  // namespace sylvite
