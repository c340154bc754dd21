#pragma once
// Compiling so that the same candidate gives the same bytes, whatever this process compiled before.

#include <string>

#include "lowering/plan/kernel.h"
#include "schedules/candidate.h"

namespace sylvite {

/// compile_to_object in a process of its own, forked from this one: the code generator numbers the names that it makes
/// by what a process has compiled before, and they become symbols of the object. Throws CompileError with the
/// message of any failure. When the fork dies, so does this process, and in the same way.
/// REQUIRES a process with one thread that is made to be lost, as workers are, and has never compiled.
[[nodiscard]] std::string compile_apart(const Kernel& kernel, const Candidate& candidate,
                                        const std::string& target);

}  // namespace sylvite
