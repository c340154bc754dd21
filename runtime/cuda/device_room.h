#pragma once
// Device memory for runs of the host's tensors, which programs that take turns share.

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/block_heap.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/recorded_graphs.h"

namespace sylvite {

/// Grows to what the largest run needs. Thread safety: one thread at a time.
class DeviceRoom {
 public:
  /// Room for a run: bytes of inputs, of outputs and of values between. What an earlier run left is gone, and its addresses are
  /// others where it grew. REQUIRES that no run goes on. Throws CudaError when memory runs out.
  [[nodiscard]] DeviceArguments take(const std::vector<std::size_t>& inputs,
                                     const std::vector<std::size_t>& outputs, std::size_t work);
  /// Page-locked memory of the host as large as that of an input.
  [[nodiscard]] void* staging(std::size_t input) const { return staging_.at(input).data(); }
  /// Page-locked memory for a result, which comes back when nobody reads it any more.
  [[nodiscard]] std::shared_ptr<void> take_result(std::size_t result_bytes) {
    return results_.take(result_bytes);
  }
  [[nodiscard]] std::size_t bytes() const;  ///< on the device

 private:
  std::vector<cuda::DeviceMemory> inputs_;
  std::vector<cuda::PinnedMemory> staging_;  ///< per input
  std::vector<cuda::DeviceMemory> outputs_;
  cuda::DeviceMemory work_;
  BlockHeap<cuda::PinnedMemory> results_;
};

}  // namespace sylvite
