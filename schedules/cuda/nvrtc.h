#pragma once
// NVRTC, the CUDA C++ compiler as a library, found when it is first called. Compiles on machines without a
// GPU.

#include <string>

namespace sylvite::cuda {

/// The machine code (cubin) of a text that needs no header, for one architecture, e.g. "sm_90a". Throws
/// UnsupportedError when NVRTC is not installed, CompileError with the compiler's log when the text is
/// refused. Thread safe.
[[nodiscard]] std::string compile_cuda(const std::string& source, const std::string& architecture);

/// Why nothing can be compiled here; empty when it can.
[[nodiscard]] const std::string& missing_nvrtc();

}  // namespace sylvite::cuda
