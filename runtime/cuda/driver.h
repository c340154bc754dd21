#pragma once
// The CUDA driver's functions, found in libcuda when one is first called. Nothing links to it and no CUDA
// header is needed: the types below repeat its binary interface.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/dynamic_library.h"
#include "base/error.h"

namespace sylvite::cuda {

using Result = int;  ///< 0 is success
using DeviceNumber = int;
using DevicePointer = std::uint64_t;
using ContextHandle = struct ContextTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using StreamHandle = struct StreamTag*;
using EventHandle = struct EventTag*;
using GraphHandle = struct GraphTag*;
using GraphExecHandle = struct GraphExecTag*;

/// CUlaunchAttribute.
struct LaunchAttribute {
  int id = 0;
  char pad[4] = {};
  union {
    unsigned values[16];
    char bytes[64];
  } value = {};
};
inline constexpr int launch_attribute_cluster = 4;  ///< value.values[0..2]: blocks in x, y, z
/// value.values[0]: 1 to overlap with the last kernel.
inline constexpr int launch_attribute_programmatic = 6;

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  StreamHandle stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

/// CUtensorMap.
struct alignas(64) TensorMap {
  std::uint64_t opaque[16] = {};
};

enum class DeviceAttribute : int {
  multiprocessors = 16,
  l2_bytes = 38,
  capability_major = 75,
  capability_minor = 76,
  shared_bytes_per_block = 97,  ///< with opting in
};
enum class FunctionAttribute : int { dynamic_shared_bytes = 8 };

/// A driver call that failed. `result` is CUresult: 2 is out of memory; 700 and up leave the process's
/// context unusable.
class CudaError : public Error {
 public:
  CudaError(const char* call, Result result, const std::string& message)
      : Error(ErrorCode::internal, message), call_(call), result_(result) {}
  [[nodiscard]] const char* call() const { return call_; }
  [[nodiscard]] Result result() const { return result_; }

 private:
  const char* call_;
  Result result_;
};
inline constexpr Result out_of_memory = 2;

/// Throws CudaError naming the call and the driver's name for the result, unless the result is success.
void check(const char* call, Result result);

/// One function of the driver. Calling it throws CudaError when it fails.
template <typename... Parameters>
class DriverFunction {
 public:
  DriverFunction(const DynamicLibrary& library, const char* name)
      : name_(name), address_(library.function(name)) {}

  void operator()(Parameters... parameters) const { check(name_, address_(parameters...)); }
  /// The same, for destructors and queries whose failure is an answer.
  Result try_call(Parameters... parameters) const { return address_(parameters...); }

 private:
  const char* name_;
  StatusFunction<Parameters...> address_;
};

/// The functions in use. Members are named after them.
struct Driver {
  template <typename... Parameters>
  using Call = DriverFunction<Parameters...>;

  DynamicLibrary library;
  explicit Driver(const DynamicLibrary& opened) : library(opened) {}

  Call<unsigned> init{library, "cuInit"};
  Call<int*> driver_version{library, "cuDriverGetVersion"};
  Call<int*> device_count{library, "cuDeviceGetCount"};
  Call<DeviceNumber*, int> device_get{library, "cuDeviceGet"};
  Call<char*, int, DeviceNumber> device_name{library, "cuDeviceGetName"};
  Call<int*, DeviceAttribute, DeviceNumber> device_attribute{library, "cuDeviceGetAttribute"};
  Call<ContextHandle*, DeviceNumber> primary_context_retain{library, "cuDevicePrimaryCtxRetain"};
  Call<ContextHandle> context_set_current{library, "cuCtxSetCurrent"};
  Call<ContextHandle*> context_get_current{library, "cuCtxGetCurrent"};
  Call<> context_synchronize{library, "cuCtxSynchronize"};

  Call<DevicePointer*, std::size_t> memory_allocate{library, "cuMemAlloc_v2"};
  Call<DevicePointer> memory_free{library, "cuMemFree_v2"};
  Call<void**, std::size_t, unsigned> host_allocate{library, "cuMemHostAlloc"};
  Call<void*> host_free{library, "cuMemFreeHost"};
  Call<DevicePointer, const void*, std::size_t, StreamHandle> copy_to_device{library, "cuMemcpyHtoDAsync_v2"};
  Call<void*, DevicePointer, std::size_t, StreamHandle> copy_to_host{library, "cuMemcpyDtoHAsync_v2"};
  Call<DevicePointer, DevicePointer, std::size_t, StreamHandle> copy_on_device{library,
                                                                               "cuMemcpyDtoDAsync_v2"};
  Call<DevicePointer, unsigned char, std::size_t, StreamHandle> fill_bytes{library, "cuMemsetD8Async"};

  Call<ModuleHandle*, const void*, unsigned, int*, void**> module_load{library, "cuModuleLoadDataEx"};
  Call<ModuleHandle> module_unload{library, "cuModuleUnload"};
  Call<FunctionHandle*, ModuleHandle, const char*> module_function{library, "cuModuleGetFunction"};
  Call<FunctionHandle, FunctionAttribute, int> set_function_attribute{library, "cuFuncSetAttribute"};
  Call<const LaunchConfig*, FunctionHandle, void**, void**> launch{library, "cuLaunchKernelEx"};
  Call<TensorMap*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*,
       const std::uint32_t*, const std::uint32_t*, int, int, int, int>
      tensor_map_tiled{library, "cuTensorMapEncodeTiled"};
  Call<TensorMap*, int, std::uint32_t, void*, const std::uint64_t*, const std::uint64_t*, const int*,
       const int*, std::uint32_t, std::uint32_t, const std::uint32_t*, int, int, int, int>
      tensor_map_windows{library, "cuTensorMapEncodeIm2col"};

  Call<StreamHandle*, unsigned> stream_create{library, "cuStreamCreate"};
  Call<StreamHandle> stream_destroy{library, "cuStreamDestroy_v2"};
  Call<StreamHandle> stream_synchronize{library, "cuStreamSynchronize"};
  Call<StreamHandle, void (*)(void*), void*> launch_host_function{library, "cuLaunchHostFunc"};
  Call<StreamHandle, EventHandle, unsigned> stream_wait_event{library, "cuStreamWaitEvent"};
  Call<StreamHandle, int> stream_begin_capture{library, "cuStreamBeginCapture_v2"};
  Call<StreamHandle, GraphHandle*> stream_end_capture{library, "cuStreamEndCapture"};
  Call<StreamHandle, int*> stream_is_capturing{library, "cuStreamIsCapturing"};
  Call<EventHandle*, unsigned> event_create{library, "cuEventCreate"};
  Call<EventHandle> event_destroy{library, "cuEventDestroy_v2"};
  Call<EventHandle, StreamHandle> event_record{library, "cuEventRecord"};
  Call<EventHandle> event_synchronize{library, "cuEventSynchronize"};
  Call<float*, EventHandle, EventHandle> event_elapsed{library, "cuEventElapsedTime"};
  Call<GraphExecHandle*, GraphHandle, unsigned long long> graph_instantiate{library,
                                                                            "cuGraphInstantiateWithFlags"};
  Call<GraphExecHandle, StreamHandle> graph_launch{library, "cuGraphLaunch"};
  Call<GraphExecHandle> graph_exec_destroy{library, "cuGraphExecDestroy"};
  Call<GraphHandle> graph_destroy{library, "cuGraphDestroy"};
};

/// The driver, opened and initialised by the first call. Thread safe. Throws UnsupportedError, the same each
/// time, on a machine without a driver or with one that lacks a function.
[[nodiscard]] const Driver& driver();

}  // namespace sylvite::cuda
