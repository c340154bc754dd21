#pragma once
// The launches of kernels that Halide compiled, as values. Their objects hold PTX and host code that checks
// arguments and calls Halide's CUDA runtime; here that runtime is replaced by one that launches nothing and
// notes what it was asked to launch. A program notes its launches once, and replays them without host code.

#include <string_view>
#include <utility>
#include <vector>

#include "runtime/cuda/noted_launch.h"
#include "runtime/object_loader.h"

namespace sylvite::cuda {

/// Places in the scratch region, for values that live only during one kernel. Launches on one stream run in
/// order, so that what one kernel gives back the next may use.
class ScratchPlaces {
 public:
  [[nodiscard]] std::uint64_t take(std::size_t bytes);  ///< an address; see encode_address
  void give_back(std::uint64_t word);
  [[nodiscard]] std::size_t size() const { return size_; }  ///< bytes of the region

 private:
  struct Block {
    std::size_t offset = 0;
    std::size_t size = 0;
    bool is_taken = false;
  };
  std::vector<Block> blocks_;
  std::size_t size_ = 0;
};

/// What one call of a kernel would launch. `status` is Halide's error code; its message is with the
/// RunContext.
struct Recording {
  int status = 0;
  std::vector<NotedLaunch> launches;
};

/// Needs no driver. Thread safety: one thread at a time.
class LaunchRecorder {
 public:
  /// Calls a kernel's host code with its arguments (KernelArgv); the `device` of buffers is of
  /// encode_address. Throws CompileError for a launch that no device can do.
  [[nodiscard]] Recording record(KernelArgv entry, void** arguments);
  [[nodiscard]] std::size_t scratch_bytes() const { return scratch_.size(); }

  // For the functions that replace Halide's.
  [[nodiscard]] ScratchPlaces& scratch() { return scratch_; }
  void add(NotedLaunch launch) { recording_->launches.push_back(std::move(launch)); }
  [[nodiscard]] Image image_of(std::string_view text);  ///< one for equal texts

 private:
  std::vector<Image> images_;
  ScratchPlaces scratch_;
  Recording* recording_ = nullptr;
};

/// Names in compiled objects, and the functions here that stand for them.
[[nodiscard]] std::vector<std::pair<const char*, void*>> recorder_symbols();

}  // namespace sylvite::cuda
