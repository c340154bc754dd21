#pragma once
// A compiled kernel with its arguments.

#include <HalideRuntime.h>

#include <memory>
#include <string>
#include <vector>

#include "lowering/plan/kernel.h"
#include "runtime/cuda/recorder.h"
#include "runtime/object_loader.h"
#include "runtime/threads.h"
#include "schedules/candidate.h"
#include "schedules/cuda/object.h"
#include "sylvite/types.h"

namespace sylvite {

/// What compile_to_object made, in the process: host code, or what a device launches without any.
struct LoadedKernel {
  KernelArgv entry = nullptr;
  std::shared_ptr<const CudaObject> launched;
  std::shared_ptr<const LaunchSpec> launch;  ///< of `launched`
};
/// Host code lives as long as the loader. Throws IoError when the object does not link, is damaged, or is for a
/// device where `on_device` is false.
[[nodiscard]] LoadedKernel load_kernel(ObjectLoader& loader, const std::string& object,
                                       const std::string& symbol, bool on_device);

/// The same to launch for `kernel`, a case of the open kernel that it was compiled for. Throws UnsupportedError where that kernel
/// does not serve these sizes.
[[nodiscard]] LoadedKernel loaded_for(LoadedKernel loaded, const Kernel& kernel, const Candidate& candidate);

/// Thread safety: one thread at a time. Does not move: the kernel's arguments point into it.
class KernelCall {
 public:
  /// `context` must live as long as this; `most` arguments and sizes are added.
  KernelCall(LoadedKernel kernel, RunContext& context, std::size_t most);
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;

  /// The next argument, inputs before outputs, as storage_strides says. Its memory is the caller's to set: `host`, or `device` as
  /// encode_address says.
  halide_buffer_t& add_argument(DType dtype, const Dims& stored, bool has_outer_blocks = false);
  /// The next argument, between inputs and outputs: one of Kernel::sizes.
  void add_size(std::int64_t size);
  [[nodiscard]] std::vector<halide_buffer_t>& buffers() { return buffers_; }
  /// Of an argument or a size that was added, by its number among its kind; as many dims as it has.
  void change_argument(std::size_t number, const Dims& stored, bool has_outer_blocks);
  void change_size(std::size_t number, std::int64_t size) {
    sizes_[number] = static_cast<std::int32_t>(size);
  }

  /// Runs the kernel on the CPU. Returns 0, or Halide's error code; its message is with the context.
  [[nodiscard]] int run() { return kernel_.entry(arguments_.data()); }
  /// What a run would launch on the device. Throws what LaunchRecorder::record and note_launch throw.
  [[nodiscard]] cuda::Recording note(cuda::LaunchRecorder& recorder);

 private:
  LoadedKernel kernel_;
  void* context_;
  std::size_t most_;
  std::vector<std::vector<halide_dimension_t>> dims_;
  std::vector<halide_buffer_t>
      buffers_;  ///< with room for the most, as is `sizes_`: their addresses are taken
  std::vector<std::int32_t> sizes_;
  std::vector<void*> arguments_;  ///< addresses of the context, then of buffers and sizes
};

}  // namespace sylvite
