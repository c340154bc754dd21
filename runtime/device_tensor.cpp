#include "sylvite/device_tensor.h"

#include "base/error.h"

namespace sylvite {

DType dtype_of_dlpack(int code, int bits, int lanes) {
  struct Row {
    int code;
    int bits;
    DType dtype;
  };
  static constexpr Row rows[] = {
      {0, 8, DType::i8},      {0, 16, DType::i16}, {0, 32, DType::i32}, {0, 64, DType::i64},
      {1, 8, DType::u8},      {1, 16, DType::u16}, {1, 32, DType::u32}, {1, 64, DType::u64},
      {2, 16, DType::f16},    {2, 32, DType::f32}, {2, 64, DType::f64}, {4, 16, DType::bf16},
      {6, 8, DType::boolean},
  };
  for (const Row& row : rows)
    if (row.code == code && row.bits == bits && lanes == 1) return row.dtype;
  throw InputError("a DLPack tensor of type code {} with {} bits and {} lanes is not supported", code, bits,
                   lanes);
}

DeviceTensor device_tensor(DType dtype, const DlPackView& view) {
  constexpr int cuda = 2;
  constexpr int cuda_managed = 13;
  if (view.device_type != cuda && view.device_type != cuda_managed)
    throw InputError("a DLPack tensor of device type {}, expected CUDA memory ({})", view.device_type, cuda);
  const Dims dims(view.shape, view.shape + view.rank);
  std::int64_t stride = 1;
  for (int i = view.rank; i-- > 0; stride *= view.shape[i]) {
    const bool matters = view.shape[i] > 1;
    if (view.strides != nullptr && matters && view.strides[i] != stride) {
      throw InputError("a DLPack tensor with stride {} in dim {}, expected {}: make it contiguous",
                       view.strides[i], i, stride);
    }
  }
  return {make_type(dtype, dims), static_cast<char*>(view.data) + view.byte_offset};
}

}  // namespace sylvite
