#pragma once
// The launches of kernels that Halide compiled, as values. Their objects hold PTX and host code that checks
// arguments and calls Halide's CUDA runtime; here that runtime is replaced by one that launches nothing and
// notes what it was asked to launch. A program notes its launches once, and replays them without host code.

#include <list>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/cuda_device.h"
#include "runtime/object_loader.h"

namespace sylvite::cuda {

/// Memory for values that live only during one kernel. Launches on one stream run in order, so that what one
/// kernel gives back the next may use.
class ScratchPool {
 public:
  [[nodiscard]] DevicePointer take(std::size_t bytes);
  void give_back(DevicePointer address);
  [[nodiscard]] std::size_t size() const;  ///< bytes on the device

 private:
  struct Block {
    DeviceMemory memory;
    bool is_taken = false;
  };
  std::list<Block> blocks_;
};

/// What one call of a kernel would launch. `status` is Halide's error code; its message is with the
/// RunContext.
struct Recording {
  int status = 0;
  std::vector<Launch> launches;  ///< valid as long as the recorder
};

/// Owns the modules of the kernels it has seen; destroy it before the ObjectLoader they come from is used by
/// another. Thread safety: one thread at a time.
class LaunchRecorder {
 public:
  /// Calls a kernel's host code with its arguments (KernelArgv); buffers have device addresses. Throws
  /// CompileError when the driver refuses the PTX.
  [[nodiscard]] Recording record(KernelArgv entry, void** arguments);
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_.size(); }

  // For the functions that replace Halide's.
  [[nodiscard]] const Module& load(std::string_view image) { return modules_.emplace_back(image); }
  [[nodiscard]] ScratchPool& scratch() { return scratch_; }
  void add(Launch launch) { recording_->launches.push_back(std::move(launch)); }

 private:
  std::list<Module> modules_;
  ScratchPool scratch_;
  Recording* recording_ = nullptr;
};

/// Names in compiled objects, and the functions here that stand for them.
[[nodiscard]] std::vector<std::pair<const char*, void*>> recorder_symbols();

}  // namespace sylvite::cuda
