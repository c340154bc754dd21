#pragma once
// Memory of the values that stay between runs: see Plan::states.

#include <cstddef>

#include "runtime/cuda/device.h"
#include "runtime/memory.h"

namespace sylvite {

/// Zero at first. Programs of one model that never run at the same time share one. Thread safety: one thread at a time.
class StateMemory {
 public:
  /// `on_device`: memory of the GPU, which is taken when it is first needed.
  StateMemory(std::size_t bytes, bool on_device);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::byte* host_data() const { return host_.data(); }  ///< REQUIRES !on_device
  /// REQUIRES on_device. Throws CudaError when memory runs out.
  [[nodiscard]] cuda::DevicePointer device_address();

  /// On a device both wait for all that was queued there before.
  void read(std::size_t offset, void* to, std::size_t bytes) const;
  void write(std::size_t offset, const void* from, std::size_t bytes);

 private:
  std::size_t size_;
  bool is_on_device_;
  Arena host_;
  cuda::DeviceMemory device_;
};

}  // namespace sylvite
