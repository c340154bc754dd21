#pragma once
// Candidate -> object code. The only place that calls Halide's code generator and NVRTC.
//
// Halide has one reporter of errors and warnings per process. A program that links this file has one of ours from
// its start on, in all its threads: it prints nothing, drops warnings, and throws Halide::CompileError for errors.

#include <Halide.h>

#include <string>

#include "lowering/plan/kernel.h"
#include "schedules/candidate.h"

namespace sylvite {

/// The C symbol of a compiled kernel: "sylvite_" and a hash of kernel text, candidate text, target and
/// code_id.
[[nodiscard]] std::string symbol_name(const Kernel& kernel, const Candidate& candidate,
                                      const std::string& target);

/// Compiles to a relocatable object without the Halide runtime. The function's C signature is
/// int symbol(void* user_context, halide_buffer_t* input..., int32_t size..., halide_buffer_t* output...);
/// open kernels have sizes.
/// For a CUDA template or a library's call it is the bytes of a CudaObject instead (schedules/cuda/object.h).
/// Throws CompileError with Halide's (or NVRTC's) message. Slow (0.1 to 1 s) and may, for bad schedules,
/// never end: call it in a child process with a time limit wherever the candidate is not known to be good.
[[nodiscard]] std::string compile_to_object(const Kernel& kernel, const Candidate& candidate,
                                            const std::string& target);

}  // namespace sylvite
