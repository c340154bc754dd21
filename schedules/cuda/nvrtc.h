#pragma once
// NVRTC, the CUDA C++ compiler as a library, found when it is first called. Compiles on machines without a
// GPU.

#include <string>

#include "schedules/cuda/object.h"
#include "schedules/cuda/template.h"

namespace sylvite::cuda {

/// The machine code (cubin) of a text. Throws UnsupportedError when NVRTC is not installed, CompileError with
/// the compiler's log when the text is refused. Thread safe.
[[nodiscard]] std::string compile_cuda(const CudaSource& source);
/// The same of a template's, with its launch; a library's call needs no compiler.
[[nodiscard]] CudaObject compile_cuda(CudaTemplate made);

/// Why nothing can be compiled here; empty when it can.
[[nodiscard]] const std::string& missing_nvrtc();

}  // namespace sylvite::cuda
