#pragma once
// nvJitLink, which compiles PTX to machine code, found when it is first called. Needs no GPU.

#include <string>

namespace sylvite::cuda {

/// The cubin of a PTX text for one architecture, e.g. "sm_90". Throws UnsupportedError when nvJitLink is not
/// installed, CompileError with its log when it refuses the text. Thread safe.
[[nodiscard]] std::string assemble_ptx(const std::string& ptx, const std::string& architecture);

}  // namespace sylvite::cuda
