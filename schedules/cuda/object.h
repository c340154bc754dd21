#pragma once
// What a candidate that is a template in CUDA C++, or a library's call, compiles to: machine code and how to
// launch it. A program loads it without a look at the kernel.

#include <string>
#include <string_view>

#include "schedules/cuda/launch_spec.h"

namespace sylvite {

struct CudaObject {
  LaunchSpec launch;
  std::string image;         ///< machine code (a cubin); none where `launch` is a library's
  std::string architecture;  ///< of the image, e.g. sm_90a
  bool operator==(const CudaObject&) const = default;
};

/// Bytes for caches and between processes of one machine.
[[nodiscard]] std::string to_bytes(const CudaObject& object);
/// By their first bytes; others are objects that a linker reads.
[[nodiscard]] bool is_cuda_object(std::string_view bytes);
/// Throws IoError for anything but what to_bytes of the same version makes.
[[nodiscard]] CudaObject parse_cuda_object(std::string_view bytes);

}  // namespace sylvite
