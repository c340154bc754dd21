#pragma once
// Random tensors on the GPU, and comparisons of results there.

#include <cmath>
#include <string>

#include "runtime/cuda/device.h"
#include "schedules/cuda/nvrtc.h"

namespace sylvite::bench {

inline constexpr const char* helpers_text = R"(
typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
__device__ float value(const void* p, u64 i, int bytes) {
  return bytes == 4 ? ((const float*)p)[i] : __uint_as_float((u32)((const u16*)p)[i] << 16);
}
// Sums of four uniforms: near normal.
extern "C" __global__ void fill(void* p, u64 n, u32 seed, float scale, int bytes) {
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) {
    float v = 0;
    for (u32 q = 0; q < 4; q++) {
      u32 h = (u32)i * 4u + q + seed * 0x9e3779b9u;
      h ^= h >> 16, h *= 0x7feb352du, h ^= h >> 15, h *= 0x846ca68bu, h ^= h >> 16;
      v += (h >> 8) * (1.f / 16777216.f) - 0.5f;
    }
    v *= 1.7320508f * scale;
    if (bytes == 4) ((float*)p)[i] = v;
    else ((u16*)p)[i] = (u16)((__float_as_uint(v) + 0x8000u) >> 16);
  }
}
// out[0] += |a - b|^2, out[1] += |b|^2, out[2] += elements further apart than rounding explains
extern "C" __global__ void compare(const void* a, const void* b, u64 n, double* out, int bytes) {
  double difference = 0, norm = 0, bad = 0;
  for (u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x; i < n; i += (u64)gridDim.x * blockDim.x) {
    const float x = value(a, i, bytes), y = value(b, i, bytes);
    difference += (double)(x - y) * (x - y), norm += (double)y * y;
    if (!(fabsf(x - y) <= 0.02f * fabsf(y) + 0.02f)) bad += 1;
  }
  atomicAdd(out, difference), atomicAdd(out + 1, norm), atomicAdd(out + 2, bad);
}
)";

class Helpers {
 public:
  Helpers() : module_(cuda::compile_cuda(CudaSource{helpers_text})), sums_(3 * sizeof(double)) {}

  void fill(const cuda::DeviceMemory& memory, int bytes, unsigned seed, float scale,
            const cuda::Stream& stream) const {
    cuda::Launch launch = helper("fill");
    launch.add_argument(memory.address());
    launch.add_argument(std::uint64_t{memory.size() / static_cast<std::size_t>(bytes)});
    launch.add_argument(seed);
    launch.add_argument(scale);
    launch.add_argument(bytes);
    cuda::launch(launch, stream.get());
  }

  struct Difference {
    double error = 0;
    double bad = 0;
  };
  Difference compare(const cuda::DeviceMemory& a, const cuda::DeviceMemory& b, int bytes,
                     const cuda::Stream& stream) const {
    cuda::driver().fill_bytes(sums_.address(), 0, sums_.size(), stream.get());
    cuda::Launch launch = helper("compare");
    launch.add_argument(a.address());
    launch.add_argument(b.address());
    launch.add_argument(std::uint64_t{a.size() / static_cast<std::size_t>(bytes)});
    launch.add_argument(sums_.address());
    launch.add_argument(bytes);
    cuda::launch(launch, stream.get());
    double sums[3];
    cuda::driver().copy_to_host(sums, sums_.address(), sizeof sums, stream.get());
    stream.synchronize();
    return {std::sqrt(sums[0] / sums[1]), sums[2]};
  }

 private:
  [[nodiscard]] cuda::Launch helper(const char* name) const {
    cuda::Launch launch;
    launch.function = module_.function(name);
    launch.shape.grid[0] = 1024;
    launch.shape.block[0] = 256;
    return launch;
  }
  cuda::Module module_;
  cuda::DeviceMemory sums_;
};

}  // namespace sylvite::bench
