#pragma once
// NVRTC, the CUDA C++ compiler as a library, found when it is first called. Compiles on machines without a
// GPU.

#include <string>

#include "runtime/object_cache.h"

namespace sylvite::cuda {

/// The machine code (cubin) of a text that needs no header, for one architecture, e.g. "sm_90a". Throws
/// UnsupportedError when NVRTC is not installed, CompileError with the compiler's log when the text is
/// refused. Thread safe.
[[nodiscard]] std::string compile_cuda(const std::string& source, const std::string& architecture);

/// The same from the cache when it is there, else compiled and stored. Keyed by content, architecture and
/// NVRTC's version.
[[nodiscard]] std::string compile_cuda(const std::string& source, const std::string& architecture,
                                       ObjectCache& cache);

/// E.g. "13.0"; part of what names compiled code. Throws UnsupportedError when NVRTC is not installed.
[[nodiscard]] std::string nvrtc_version();

}  // namespace sylvite::cuda
