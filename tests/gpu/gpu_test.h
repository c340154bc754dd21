#pragma once
// Tests that need a GPU: skipped, with the reason, on a machine without one. ctest label: gpu.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "runtime/cuda/device.h"

namespace sylvite {

/// Why GPU tests cannot run here; "" when they can.
inline std::string missing_gpu() {
  try {
    (void)cuda::Device::get();
    return "";
  } catch (const UnsupportedError& error) {
    return error.what();
  }
}

/// A file beside the test program, else where the build knows it: a bundle has moved from there.
inline std::string beside(const std::string& name, const std::string& built) {
  std::error_code ignored;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / name;
  return std::filesystem::exists(here, ignored) ? here.string() : built;
}

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_gpu(); !reason.empty()) GTEST_SKIP() << reason;
    cuda::Device::get().make_current();
  }
};

}  // namespace sylvite
