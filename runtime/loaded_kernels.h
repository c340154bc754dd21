#pragma once
// Kernels in the process, each loaded once for all programs that share them.

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/cuda/modules.h"
#include "runtime/kernel_call.h"

namespace sylvite {

/// Code lives as long as this. Thread safety: safe.
class LoadedKernels {
 public:
  /// As load_kernel; `object` is not looked at where `symbol` is loaded already.
  const LoadedKernel& load(const std::string& object, const std::string& symbol, bool on_device);
  [[nodiscard]] bool has(const std::string& symbol) const;

 private:
  mutable std::mutex mutex_;
  ObjectLoader loader_;
  std::map<std::string, LoadedKernel> by_symbol_;
};

/// What relatives have loaded: in the process, and on the device.
struct LoadedCode {
  LoadedKernels kernels;
  std::shared_ptr<cuda::Modules> modules = std::make_shared<cuda::Modules>();
};

}  // namespace sylvite
