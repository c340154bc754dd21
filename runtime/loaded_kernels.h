#pragma once
// Kernels in the process, each loaded once for all programs that share them.

#include <map>
#include <mutex>
#include <string>

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

}  // namespace sylvite
