#include "runtime/cuda_template_kernel.h"

#include "base/error.h"

namespace sylvite::cuda {
namespace {

/// CUtensorMapDataType.
int map_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
      return 6;
    case DType::f32:
      return 7;
    case DType::bf16:
      return 9;
    default:
      throw InternalError("no tensor map of {}", dtype_name(dtype));
  }
}

/// CUtensorMapSwizzle.
int map_swizzle(int bytes) {
  return bytes == 128 ? 3 : bytes == 64 ? 2 : bytes == 32 ? 1 : 0;
}

TensorMap encode(const CudaTensorMap& map, DevicePointer address) {
  constexpr int no_interleave = 0;
  constexpr int promote_to_256_bytes = 3;  // of L2
  constexpr int zeros_outside = 0;
  std::uint64_t dims[4];
  std::uint64_t pitches[3];
  std::uint32_t box[4];
  const std::uint32_t steps[4] = {1, 1, 1, 1};
  for (int i = 0; i < 4; ++i) {
    dims[i] = static_cast<std::uint64_t>(map.dims[i]);
    box[i] = static_cast<std::uint32_t>(map.box[i]);
    if (i < 3) pitches[i] = static_cast<std::uint64_t>(map.pitches[i]);
  }
  TensorMap encoded;
  auto* start = reinterpret_cast<void*>(address + static_cast<DevicePointer>(map.offset));
  if (map.windows) {
    const CudaWindows& windows = *map.windows;
    const std::uint32_t window_steps[4] = {1, static_cast<std::uint32_t>(windows.step[0]),
                                           static_cast<std::uint32_t>(windows.step[1]), 1};
    driver().tensor_map_windows(&encoded, map_type(map.dtype), 4, start, dims, pitches, windows.first,
                                windows.last, box[0], box[1], window_steps, no_interleave,
                                map_swizzle(map.swizzle), promote_to_256_bytes, zeros_outside);
  } else {
    driver().tensor_map_tiled(&encoded, map_type(map.dtype), 4, start, dims, pitches, box, steps,
                              no_interleave, map_swizzle(map.swizzle), promote_to_256_bytes, zeros_outside);
  }
  return encoded;
}

}  // namespace

TemplateKernel::TemplateKernel(const CudaTemplate& text, const std::string& code)
    : text_(text), module_(code), function_(module_.function(text.name)) {
  allow_shared(function_, text.shared_bytes);
}

Launch TemplateKernel::bind(std::span<const DevicePointer> arguments) const {
  Launch result;
  result.function = function_;
  result.grid[0] = text_.blocks;
  result.block[0] = text_.threads;
  result.cluster[0] = text_.cluster;
  result.shared_bytes = text_.shared_bytes;
  result.programmatic = text_.programmatic;
  for (const CudaTensorMap& map : text_.maps) {
    result.add_argument(map.argument < 0 ? TensorMap{}
                                         : encode(map, arguments[static_cast<std::size_t>(map.argument)]));
  }
  std::vector<std::byte> pointers;
  for (const int argument : text_.pointers) {
    const DevicePointer address = argument < 0 ? 0 : arguments[static_cast<std::size_t>(argument)];
    const auto bytes = std::as_bytes(std::span(&address, 1));
    pointers.insert(pointers.end(), bytes.begin(), bytes.end());
  }
  result.arguments.push_back(std::move(pointers));
  return result;
}

}  // namespace sylvite::cuda
