#pragma once
// One kernel on the device with tensors of its own, for measuring.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/cuda/launch_maker.h"

namespace sylvite::cuda {

/// Thread safety: one thread at a time.
class DeviceKernel {
 public:
  /// The calling thread's context is the device's from here on. Throws UnsupportedError without a device.
  DeviceKernel();

  /// A tensor with these bytes. Returns its address for the kernel's arguments (encode_address).
  [[nodiscard]] std::uint64_t upload(const void* data, std::size_t bytes);
  /// Throws what LaunchMaker::make throws.
  void set_launches(const std::vector<NotedLaunch>& noted, std::size_t scratch_bytes);

  /// Returns before the kernel ends.
  void call() const;
  /// Microseconds of one call, the mean of at least this many in a row.
  [[nodiscard]] double time(int calls);
  /// The first bytes of the tensor that was uploaded as number `tensor`, when all calls have ended.
  void download(std::size_t tensor, void* data, std::size_t bytes) const;
  /// Sets all its bytes, between the calls before and those that follow.
  void fill(std::size_t tensor, int byte) const;

 private:
  Stream stream_;
  std::vector<DeviceMemory> memory_;  ///< per tensor
  DeviceMemory scratch_;
  Regions regions_;  ///< all tensors are inputs
  LaunchMaker maker_;
  std::vector<Launch> launches_;
  Graph graph_;
};

}  // namespace sylvite::cuda
