/* The functions of the CUDA driver that launcher_cuda.c calls, found when the first model is created; nothing
 * links to the driver. The types repeat its binary interface. */
#ifndef SYLVITE_CUDA_FUNCTIONS_H
#define SYLVITE_CUDA_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t cuda_address;
typedef void* cuda_handle; /* a context, module, function or stream */

struct cuda_map { /* CUtensorMap; at a multiple of 64 bytes */
  uint64_t opaque[16];
};
struct cuda_attribute { /* CUlaunchAttribute */
  int id;
  char pad[4];
  unsigned values[16];
};
struct cuda_config { /* CUlaunchConfig */
  unsigned grid[3], block[3], shared_bytes;
  cuda_handle stream;
  struct cuda_attribute* attributes;
  unsigned attribute_count;
};
struct cuda_rows { /* CUDA_MEMCPY2D */
  size_t from_first_byte, from_first_row;
  int from_kind;
  const void* from_host;
  cuda_address from;
  void* from_array;
  size_t from_pitch;
  size_t to_first_byte, to_first_row;
  int to_kind;
  void* to_host;
  cuda_address to;
  void* to_array;
  size_t to_pitch, row_bytes, row_count;
};
enum {
  CUDA_MEMORY_HOST = 1,
  CUDA_MEMORY_DEVICE = 2,
  CUDA_ATTRIBUTE_CLUSTER = 4,
  CUDA_ATTRIBUTE_PROGRAMMATIC = 6,
  CUDA_CAPABILITY_MAJOR = 75,
  CUDA_CAPABILITY_MINOR = 76,
  CUDA_DYNAMIC_SHARED_BYTES = 8,
  CUDA_STREAM_NON_BLOCKING = 1,
  CUDA_OUT_OF_MEMORY = 2
};

/* ROW(member, name in the driver, parameters); all return 0 or an error number. */
#define SYLVITE_CUDA_FUNCTIONS(ROW)                                                                      \
  ROW(init, "cuInit", (unsigned))                                                                        \
  ROW(error_name, "cuGetErrorName", (int, const char**))                                                 \
  ROW(device_get, "cuDeviceGet", (int*, int))                                                            \
  ROW(device_attribute, "cuDeviceGetAttribute", (int*, int, int))                                        \
  ROW(primary_context, "cuDevicePrimaryCtxRetain", (cuda_handle*, int))                                  \
  ROW(primary_context_release, "cuDevicePrimaryCtxRelease_v2", (int))                                    \
  ROW(context_current, "cuCtxGetCurrent", (cuda_handle*))                                                \
  ROW(context_push, "cuCtxPushCurrent_v2", (cuda_handle))                                                \
  ROW(context_pop, "cuCtxPopCurrent_v2", (cuda_handle*))                                                 \
  ROW(context_device, "cuCtxGetDevice", (int*))                                                          \
  ROW(context_synchronize, "cuCtxSynchronize", (void))                                                   \
  ROW(memory_allocate, "cuMemAlloc_v2", (cuda_address*, size_t))                                         \
  ROW(memory_free, "cuMemFree_v2", (cuda_address))                                                       \
  ROW(copy_to_device, "cuMemcpyHtoDAsync_v2", (cuda_address, const void*, size_t, cuda_handle))          \
  ROW(copy_to_host, "cuMemcpyDtoHAsync_v2", (void*, cuda_address, size_t, cuda_handle))                  \
  ROW(copy_on_device, "cuMemcpyDtoDAsync_v2", (cuda_address, cuda_address, size_t, cuda_handle))         \
  ROW(copy_rows, "cuMemcpy2DAsync_v2", (const struct cuda_rows*, cuda_handle))                           \
  ROW(fill_bytes, "cuMemsetD8Async", (cuda_address, unsigned char, size_t, cuda_handle))                 \
  ROW(module_load, "cuModuleLoadData", (cuda_handle*, const void*))                                      \
  ROW(module_unload, "cuModuleUnload", (cuda_handle))                                                    \
  ROW(module_function, "cuModuleGetFunction", (cuda_handle*, cuda_handle, const char*))                  \
  ROW(set_attribute, "cuFuncSetAttribute", (cuda_handle, int, int))                                      \
  ROW(launch, "cuLaunchKernelEx", (const struct cuda_config*, cuda_handle, void**, void**))              \
  ROW(map_tiled, "cuTensorMapEncodeTiled",                                                               \
      (struct cuda_map*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*,        \
       const uint32_t*, int, int, int, int))                                                             \
  ROW(map_windows, "cuTensorMapEncodeIm2col",                                                            \
      (struct cuda_map*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const int*, const int*, \
       uint32_t, uint32_t, const uint32_t*, int, int, int, int))                                         \
  ROW(stream_create, "cuStreamCreate", (cuda_handle*, unsigned))                                         \
  ROW(stream_destroy, "cuStreamDestroy_v2", (cuda_handle))                                               \
  ROW(stream_captures, "cuStreamIsCapturing", (cuda_handle, int*))                                       \
  ROW(stream_synchronize, "cuStreamSynchronize", (cuda_handle))

#define SYLVITE_CUDA_MEMBER(member, name, parameters) int(*member) parameters;
struct cuda_functions {
  SYLVITE_CUDA_FUNCTIONS(SYLVITE_CUDA_MEMBER)
};
#undef SYLVITE_CUDA_MEMBER

#endif
