#pragma once
// cuDNN's convolutions, the vendor's candidates for those. The library is found when it is first called;
// nothing links to it and no header of it is needed.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/cuda/driver.h"
#include "schedules/cuda/library_call.h"

namespace sylvite::cuda {

struct CudnnDescriptor;  // the library's

/// E.g. 91900. Throws UnsupportedError when the library is not installed.
[[nodiscard]] std::int64_t cudnn_version();

/// The engines that cuDNN's heuristics propose for one convolution, the best guess first. An engine becomes a
/// plan when it is first asked for: some compile a kernel for it. Thread safety: one thread at a time.
class CudnnConv {
 public:
  struct Arguments {
    DevicePointer images = 0, filter = 0, bias = 0, residual = 0, out = 0;
    DevicePointer workspace = 0;  ///< of workspace_bytes
  };

  /// REQUIRES a current context. Throws UnsupportedError when the library is not installed or has nothing for
  /// the problem.
  explicit CudnnConv(const LibraryConvProblem& problem);

  [[nodiscard]] std::size_t engine_count() const { return engines_.size(); }
  /// Throws UnsupportedError when there is no such engine, or when it turns out that it cannot take the
  /// problem.
  [[nodiscard]] std::size_t workspace_bytes(std::size_t engine);
  /// What enqueues the convolution; may be captured. Valid as long as this. Throws as workspace_bytes.
  [[nodiscard]] std::function<void(StreamHandle)> bind(std::size_t engine, const Arguments& arguments);

 private:
  struct Destroy {
    void operator()(CudnnDescriptor* descriptor) const noexcept;
  };
  using Descriptor = std::unique_ptr<CudnnDescriptor, Destroy>;
  friend class CudnnGraph;

  void find_engines(CudnnDescriptor* graph);
  [[nodiscard]] CudnnDescriptor* plan_of(std::size_t engine);

  std::vector<Descriptor> parts_;  ///< of the operation graph
  std::vector<Descriptor> engines_;
  std::vector<Descriptor> plans_;  ///< per engine; null until it is asked for
  bool has_bias_ = false, has_residual_ = false;
};

}  // namespace sylvite::cuda
