#pragma once
// Modules on the device, each loaded once for all programs that share them.

#include <mutex>
#include <string_view>
#include <unordered_map>

#include "runtime/cuda/device.h"
#include "runtime/cuda/noted_launch.h"

namespace sylvite::cuda {

/// Thread safety: safe.
class Modules {
 public:
  /// The module of this image, or of an equal one. REQUIRES a current context. Throws CompileError when the driver refuses
  /// it. Valid as long as this.
  [[nodiscard]] const Module& of(const Image& image);

 private:
  struct Loaded {
    Image image;
    Module module;
  };
  std::mutex mutex_;
  std::unordered_map<std::string_view, Loaded> by_image_;  ///< by what the images hold
};

}  // namespace sylvite::cuda
