#pragma once
// Tests that need a GPU: skipped, with the reason, on a machine without one. ctest label: gpu.

#include <gtest/gtest.h>

#include <string>

#include "runtime/cuda_device.h"

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

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_gpu(); !reason.empty()) GTEST_SKIP() << reason;
    cuda::Device::get().make_current();
  }
};

}  // namespace sylvite
