#pragma once
// What a template in CUDA C++ makes of a kernel and a choice of numbers.

#include <string>

#include "schedules/cuda/launch_spec.h"

namespace sylvite {

/// What NVRTC compiles: a text that needs no header.
struct CudaSource {
  std::string text;
  std::string architecture = "sm_90a";
};

struct CudaTemplate {
  CudaSource source;  ///< without a text where `launch` is a library's
  LaunchSpec launch;
};

}  // namespace sylvite
