#pragma once
// A CUDA driver without a card, in C: its memory is the host's, and a launch is a line on stdout, which says how many blocks there are.

namespace sylvite {

inline constexpr const char* fake_cuda_driver = R"(
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void* handle;
struct config { unsigned grid[3], block[3], shared_bytes; };
int fake_maps;
static long blocks, launches;
int cuInit(unsigned flags) { (void)flags; return 0; }
int cuGetErrorName(int error, const char** name) { (void)error; *name = "FAKE"; return 0; }
int cuDeviceGet(int* device, int number) { *device = number; return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) { (void)device; *value = attribute == 75 ? 9 : 0; return 0; }
int cuDevicePrimaryCtxRetain(handle* context, int device) { (void)device; *context = &fake_maps; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { (void)device; return 0; }
int cuCtxGetCurrent(handle* context) { *context = NULL; return 0; }
int cuCtxPushCurrent_v2(handle context) { (void)context; return 0; }
int cuCtxPopCurrent_v2(handle* context) { *context = NULL; return 0; }
int cuCtxGetDevice(int* device) { *device = 0; return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuMemAlloc_v2(uint64_t* address, size_t bytes) { *address = (uint64_t)(uintptr_t)malloc(bytes); return 0; }
int cuMemFree_v2(uint64_t address) { free((void*)(uintptr_t)address); return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, handle stream) {
  (void)stream; memcpy((void*)(uintptr_t)to, from, bytes); return 0; }
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, handle stream) {
  (void)stream; memcpy(to, (void*)(uintptr_t)from, bytes); return 0; }
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, handle stream) {
  (void)stream; memmove((void*)(uintptr_t)to, (void*)(uintptr_t)from, bytes); return 0; }
struct rows {
  size_t from_byte, from_row; int from_kind; const void* from_host; uint64_t from; handle from_array; size_t from_pitch;
  size_t to_byte, to_row; int to_kind; void* to_host; uint64_t to; handle to_array; size_t to_pitch, bytes, count;
};
int cuMemcpy2DAsync_v2(const struct rows* rows, handle stream) {
  const char* from = rows->from_kind == 1 ? rows->from_host : (const char*)(uintptr_t)rows->from;
  char* to = rows->to_kind == 1 ? rows->to_host : (char*)(uintptr_t)rows->to;
  (void)stream;
  for (size_t i = 0; i < rows->count; ++i) memcpy(to + i * rows->to_pitch, from + i * rows->from_pitch, rows->bytes);
  return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, handle stream) {
  (void)stream; memset((void*)(uintptr_t)to, value, bytes); return 0; }
int cuModuleLoadData(handle* module, const void* image) { *module = (void*)image; return 0; }
int cuModuleUnload(handle module) { (void)module; return 0; }
int cuModuleGetFunction(handle* function, handle module, const char* name) { (void)name; *function = module; return 0; }
int cuFuncSetAttribute(handle function, int attribute, int value) { (void)function; (void)attribute; (void)value; return 0; }
int cuLaunchKernelEx(const struct config* config, handle function, void** parameters, void** extra) {
  (void)function; (void)parameters; (void)extra;
  ++launches;
  blocks += (long)config->grid[0] * config->grid[1] * config->grid[2];
  return 0;
}
static int encode(uint64_t* map, int rank, const uint64_t* dims, const uint32_t* box) {
  ++fake_maps;
  for (int i = 0; i < rank; ++i)
    if (dims[i] == 0 || box[i] == 0 || box[i] > 256) return 1;
  map[0] = 1;
  return 0;
}
int cuTensorMapEncodeTiled(uint64_t* map, int type, uint32_t rank, void* start, const uint64_t* dims, const uint64_t* pitches,
    const uint32_t* box, const uint32_t* steps, int a, int b, int c, int d) {
  (void)type; (void)start; (void)pitches; (void)steps; (void)a; (void)b; (void)c; (void)d;
  return encode(map, (int)rank, dims, box);
}
int cuTensorMapEncodeIm2col(uint64_t* map, int type, uint32_t rank, void* start, const uint64_t* dims, const uint64_t* pitches,
    const int* first, const int* last, uint32_t channels, uint32_t windows, const uint32_t* steps, int a, int b, int c, int d) {
  const uint32_t box[4] = {channels, windows, 1, 1};
  (void)type; (void)start; (void)pitches; (void)first; (void)last; (void)steps; (void)a; (void)b; (void)c; (void)d;
  return encode(map, (int)rank, dims, box);
}
int cuStreamCreate(handle* stream, unsigned flags) { (void)flags; *stream = NULL; return 0; }
int cuStreamDestroy_v2(handle stream) { (void)stream; return 0; }
int cuStreamIsCapturing(handle stream, int* captures) { *captures = stream != NULL; return 0; }
int cuStreamSynchronize(handle stream) { (void)stream; return 0; }
void fake_report(void) { printf("%ld launches, %ld blocks\n", launches, blocks); launches = blocks = 0; }
)";

}  // namespace sylvite
